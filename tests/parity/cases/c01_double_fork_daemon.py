#: {"text": "forked", "max_ms": 5000}
import os
import time


def tool():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)
    os.wait()
    return "forked"
