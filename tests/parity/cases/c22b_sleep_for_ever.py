#: {"cause": "timeout", "timeout_ms": 1000, "cpu": 5, "max_ms": 2500, "text": "stopped: time limit of 1 s reached"}
import time


def tool():
    time.sleep(1000)
