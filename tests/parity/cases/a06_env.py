#: {"backends": "process pool", "env": ["TOKEN=sécret=1", "EMPTY="], "text": "[\"s\\u00e9cret=1\", \"\", \"/usr/bin:/bin\"]"}
import os


def tool():
    return [os.environ["TOKEN"], os.environ["EMPTY"], os.environ["PATH"]]
