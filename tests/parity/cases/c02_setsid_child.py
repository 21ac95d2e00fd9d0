#: {"text": "started", "max_ms": 5000}
import subprocess


def tool():
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    return "started"
