#: {"cause": "timeout", "timeout_ms": 1500, "max_ms": 3500, "text": "stopped: time limit of 1500 ms reached"}
import os
import signal
import time


def tool():
    os.kill(0, signal.SIGSTOP)
    time.sleep(100)
