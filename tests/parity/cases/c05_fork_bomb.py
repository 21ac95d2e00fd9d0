#: {"cause": "timeout", "timeout_ms": 1500, "max_ms": 6000, "text": "stopped: time limit of 1500 ms reached"}
import os
import time


def tool():
    for _ in range(60):
        try:
            pid = os.fork()
        except OSError:
            break
        if pid == 0:
            if os.fork() == 0:
                os.setsid()
            time.sleep(1000)
    time.sleep(1000)
