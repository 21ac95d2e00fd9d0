#: {"fsize_mb": 1, "text": "OSError 27"}
import os
import tempfile


def tool():
    try:
        with tempfile.TemporaryFile() as f:
            for _ in range(1025):
                f.write(b"x" * 1024)
    except OSError as e:
        return "OSError %d" % e.errno
    return "no limit"
