#: {"cause": "signal", "detail": 11, "text": "the tool was killed by signal 11 (SIGSEGV: invalid memory access)"}
import os
import signal


def tool():
    os.kill(os.getpid(), signal.SIGSEGV)
