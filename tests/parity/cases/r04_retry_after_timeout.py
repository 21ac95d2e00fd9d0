#: {"retries": 1, "timeout_ms": 700, "cause": "timeout", "attempts": 2, "log": "try\ntry\n", "max_ms": 4000,
#:  "text": "stopped: time limit of 700 ms reached"}
import time


def tool():
    print("try")
    time.sleep(50)
