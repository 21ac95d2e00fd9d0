#: {"text": "done", "log": "one\ntwo é\nthree\nfrom a child\nno newline"}
import os
import subprocess
import sys


def tool():
    print("one")
    print("two é", file=sys.stderr)
    os.write(1, b"three\n")
    subprocess.run(["echo", "from a child"], check=True)
    sys.stdout.write("no newline")
    return "done"
