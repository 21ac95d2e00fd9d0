#: {"cause": "signal", "detail": 9, "text": "the tool was killed by signal 9 (SIGKILL)"}
import os
import signal


def tool():
    os.kill(os.getpid(), signal.SIGKILL)
