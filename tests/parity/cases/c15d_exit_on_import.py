#: {"cause": "exit", "detail": 2, "text": "the tool exited with code 2 before it gave a result"}
import sys

sys.exit(2)
