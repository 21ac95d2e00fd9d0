#: {"mem_mb": 512, "text_has": ["threads"], "max_ms": 15000}
import threading


def tool():
    gate = threading.Event()
    n = 0
    try:
        for _ in range(400):
            threading.Thread(target=gate.wait, daemon=True).start()
            n += 1
    except (RuntimeError, MemoryError):
        pass
    gate.set()
    return "threads" if n >= 4 else "only %d" % n
