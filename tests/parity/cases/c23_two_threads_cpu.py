#: {"cause": "cpu", "cpu": 1, "text": "stopped: CPU limit of 1 s reached"}
import hashlib
import threading


def tool():
    def burn():
        while True:
            hashlib.sha256(b"x" * 1000000).digest()
    threads = [threading.Thread(target=burn) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
