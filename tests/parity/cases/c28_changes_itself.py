#: {"text": "[\"/\", \"1\"]"}
import os
import sys


def tool():
    os.chdir("/")
    os.umask(0)
    os.environ["X"] = "1"
    os.environ.pop("PATH", None)
    sys.path.clear()
    sys.modules.pop("json", None)
    return [os.getcwd(), os.environ["X"]]
