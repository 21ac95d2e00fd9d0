#: {"text": "['', '', 'EOFError']", "max_ms": 5000}
import os
import sys


def tool():
    out = [sys.stdin.read(), os.read(0, 10).decode()]
    try:
        input()
    except EOFError as e:
        out.append(type(e).__name__)
    return str(out)
