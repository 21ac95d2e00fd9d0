#: {"cause": "signal tool_error", "mem_mb": 4096, "max_ms": 15000}
import sys


def tool():
    sys.setrecursionlimit(10 ** 6)

    class A:
        def __getattr__(self, name):
            return getattr(self, name + "x")

    def down(n):
        return repr(Deep(n))

    class Deep:
        def __init__(self, n):
            self.n = n

        def __repr__(self):
            return repr([Deep(self.n + 1)])
    return down(0)
