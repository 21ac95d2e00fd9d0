#: {"text": "still here", "log": ""}
import os


def tool():
    os.close(1)
    os.close(2)
    return "still here"
