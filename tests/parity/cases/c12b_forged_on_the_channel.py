#: {"text": "the real one", "max_ms": 5000}
import os
import stat
import struct


def tool():
    body = b"\x01" + struct.pack("<I", 6) + b"forged"
    for fd in range(3, 16):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                for call in (0, 1, 77):
                    os.write(fd, b"SYF1R" + struct.pack("<QI", call, 4000000000))
                    os.write(fd, b"SYF1R" + struct.pack("<QI", call, len(body)) + body)
                os.write(fd, b"SYF1SYF1RRR")
        except OSError:
            pass
    return "the real one"
