#: {"text_len": 30000000, "max_output": 67108864, "log": ""}
import signal


def tool():
    def boom(number, frame):
        raise RuntimeError("too late")
    text = "z" * 30000000
    signal.signal(signal.SIGALRM, boom)
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.0005)
    try:
        return text
    finally:
        signal.signal(signal.SIGALRM, lambda number, frame: None)
