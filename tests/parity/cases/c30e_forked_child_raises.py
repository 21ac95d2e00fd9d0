#: {"text": "parent, child ended with 1", "log_has": ["ValueError: in the child"]}
import os


def tool():
    pid = os.fork()
    if pid == 0:
        raise ValueError("in the child")
    _, status = os.waitpid(pid, 0)
    return "parent, child ended with %d" % os.WEXITSTATUS(status)
