#: {"text": "[0, 42]", "only": "none"}
import multiprocessing


def child(q, lock):
    with lock:
        q.put(42)


def tool():
    ctx = multiprocessing.get_context("fork")
    q = ctx.SimpleQueue()
    p = ctx.Process(target=child, args=(q, ctx.Lock()))
    p.start()
    got = q.get()
    p.join()
    return [p.exitcode, got]
