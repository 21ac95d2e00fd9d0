#: {"text": "answered", "max_ms": 4000}
import atexit
import threading
import time


class Slow:
    def __del__(self):
        time.sleep(100)


KEEP = Slow()


def tool():
    atexit.register(time.sleep, 100)
    threading.Thread(target=time.sleep, args=(100,)).start()
    return "answered"
