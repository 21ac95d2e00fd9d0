#: {"text": "done", "log_has": ["[log cut: more than 1 MB]\n"], "log_len": 1048603, "max_ms": 15000}
import sys


def tool():
    for _ in range(1000):
        sys.stderr.write("e" * 99999 + "\n")
    return "done"
