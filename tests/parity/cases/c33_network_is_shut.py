#: {"backends": "process pool", "text": "[]", "only": "restricted strict"}
import socket


def tool():
    made = []
    for name, family, kind, proto in (
            ("tcp", socket.AF_INET, socket.SOCK_STREAM, 0),
            ("udp", socket.AF_INET, socket.SOCK_DGRAM, 0),
            ("mptcp", socket.AF_INET, socket.SOCK_STREAM, 262),
            ("tcp6", socket.AF_INET6, socket.SOCK_STREAM, 0),
            ("unix", socket.AF_UNIX, socket.SOCK_STREAM, 0),
            ("netlink", 16, socket.SOCK_RAW, 0)):
        try:
            socket.socket(family, kind, proto).close()
            made.append(name)
        except OSError:
            pass
    return made
