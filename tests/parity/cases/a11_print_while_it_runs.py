#: {"cause": "cancelled", "text": "stopped: the call was cancelled", "cancel_on_log": 1,
#:  "log": "working\n", "max_ms": 3000}
import time


def tool():
    print("working")
    time.sleep(100)
