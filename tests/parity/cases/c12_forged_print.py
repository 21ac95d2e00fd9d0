#: {"text": "the real one", "log_has": ["SYF1R"]}
import os
import struct


def tool():
    body = b"\x01" + struct.pack("<I", 6) + b"forged"
    for call in (0, 1, 2 ** 64 - 1):
        frame = b"SYF1R" + struct.pack("<QI", call, len(body)) + body
        os.write(1, frame)
        os.write(2, frame)
    return "the real one"
