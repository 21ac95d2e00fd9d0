#: {"cause": "signal", "detail": 6, "text": "the tool was killed by signal 6 (SIGABRT: it aborted itself)"}
import os


def tool():
    os.abort()
