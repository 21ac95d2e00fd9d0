#: {"cause": "no_result", "text": "the tool ended without a result", "max_ms": 5000}
import os


def tool():
    os.closerange(0, 256)
    return "lost"
