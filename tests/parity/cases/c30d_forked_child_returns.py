#: {"text": "parent, child ended with 0", "log_not": ["Traceback"]}
import os


def tool():
    pid = os.fork()
    if pid == 0:
        return "child"
    _, status = os.waitpid(pid, 0)
    return "parent, child ended with %d" % os.WEXITSTATUS(status)
