#: {"timeout_ms": 3000, "text": "in time", "max_ms": 3200}
import time


def tool():
    time.sleep(0.5)
    return "in time"
