#: {"text": "0", "only": "none", "max_ms": 15000}
import multiprocessing
import time


def tool():
    p = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(0,))
    p.start()
    p.join()
    return p.exitcode
