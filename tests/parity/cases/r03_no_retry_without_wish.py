#: {"cause": "exit", "detail": 9, "attempts": 1, "text": "the tool exited with code 9 before it gave a result"}
import os


def tool():
    os._exit(9)
