#: {"cause": "no_result", "text": "the tool ended without a result", "log": "before\n"}
import os


def tool():
    print("before")
    os._exit(0)
