#: {"cause": "signal", "detail": 14, "text": "the tool was killed by signal 14 (SIGALRM)"}
import signal
import time


def tool():
    signal.alarm(1)
    time.sleep(100)
