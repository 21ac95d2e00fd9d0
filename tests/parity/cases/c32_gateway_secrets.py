#: {"backends": "process pool", "text": "[[\"HOME\", \"LANG\", \"PATH\", \"SOULACY_TEST_MARK\", \"TMPDIR\"], [0, 1, 2]]", "only": "none"}
import os


def tool():
    names = sorted(n for n in os.environ if n != "LC_CTYPE")
    fds = []
    for n in os.listdir("/proc/self/fd"):
        try:
            if os.fstat(int(n)) and os.get_inheritable(int(n)):
                fds.append(int(n))
        except OSError:
            pass
    return [names, sorted(fds)]
