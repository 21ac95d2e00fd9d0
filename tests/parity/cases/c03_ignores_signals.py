#: {"cause": "timeout", "timeout_ms": 1500, "max_ms": 3500, "log": "ignoring\n",
#:  "text": "stopped: time limit of 1500 ms reached"}
import signal
import time


def tool():
    for s in (signal.SIGTERM, signal.SIGXCPU, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, signal.SIG_IGN)
    print("ignoring")
    while True:
        time.sleep(1)
