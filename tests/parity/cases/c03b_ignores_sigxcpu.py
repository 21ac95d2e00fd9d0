#: {"cause": "cpu", "cpu": 1, "timeout_ms": 20000, "text": "stopped: CPU limit of 1 s reached"}
import signal


def tool():
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass
