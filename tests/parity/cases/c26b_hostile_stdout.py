#: {"text": "answered", "max_ms": 4000}
import sys


class Broken:
    def write(self, text):
        raise RuntimeError("no")

    def flush(self):
        raise SystemExit("no")


def tool():
    sys.stdout = sys.stderr = Broken()
    return "answered"
