#: {"nofile": 256, "text": "limited"}
import os


def tool():
    kept = []
    try:
        for _ in range(300):
            kept.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as e:
        for fd in kept:
            os.close(fd)
        return "limited" if e.errno == 24 and len(kept) > 200 else str(e)
    return "not limited"
