#: {"cause": "exit", "detail": 3, "text": "the tool exited with code 3 before it gave a result"}
import sys


def tool():
    sys.exit(3)
