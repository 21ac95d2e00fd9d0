#: {"text": "done", "log_has": ["[log cut: more than 1 MB]\n"], "log_len": 1048603, "max_ms": 15000}
import os


def tool():
    block = b"o" * 999 + b"\n"
    for _ in range(100000):
        os.write(1, block)
    return "done"
