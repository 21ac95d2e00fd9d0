#: {"backends": "process pool", "retries": 3, "attempts": 2, "text": "second", "only": "none"}
import os

MARK = "/tmp/" + os.environ["SOULACY_TEST_MARK"].replace("/", "")


def tool():
    if os.path.exists(MARK):
        os.remove(MARK)
        return "second"
    open(MARK, "w").close()
    os._exit(9)
