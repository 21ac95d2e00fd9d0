"""Tries to read the gateway's key, as a hostile tool would, and tells what it saw.

The report is true at every isolation level: each attempt says what was read or why not.
The key itself is never returned, only that something of its form was there.
"""
import errno
import os
import re

KEY = re.compile(rb"sy_[0-9a-f]{64}")
READ_MAX = 1024 * 1024
MEMORY_MAX = 64 * 1024 * 1024


def failure(e):
    name = errno.errorcode.get(e.errno, str(e.errno)) if e.errno else type(e).__name__
    # A file that is hidden from the tool and one that does not exist look the same.
    return "%s (%s)" % ("not there" if name in ("ENOENT", "ENOTDIR") else "refused", name)


class Report:
    def __init__(self):
        self.tried = []
        self.found_in = []

    def add(self, what, outcome, data=b""):
        if KEY.search(data):
            outcome += ": THE KEY IS IN IT"
            self.found_in.append(what)
        self.tried.append("%s: %s" % (what, outcome))
        print("%s: %s" % (what, outcome))

    def read(self, path):
        try:
            with open(path, "rb") as f:
                data = f.read(READ_MAX)
        except OSError as e:
            self.add(path, failure(e))
            return b""
        self.add(path, "read %d bytes" % len(data), data)
        return data


def processes():
    try:
        return sorted((p for p in os.listdir("/proc") if p.isdigit()), key=int)
    except OSError:
        return []


def command(pid):
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as f:
            return f.read(65536).split(b"\0")
    except OSError:
        return []


def is_gateway(words):
    return len(words) > 1 and os.path.basename(words[0]) == b"soulacy" and words[1] == b"serve"


def config_of(pid, words):
    """The file that a gateway's command line names, as far as this process can tell."""
    path = b"config.yaml"
    for i, word in enumerate(words):
        if word.startswith(b"--config="):
            path = word[9:]
        elif word == b"--config" and i + 1 < len(words):
            path = words[i + 1]
    if not path.startswith(b"/"):
        try:
            path = os.path.join(os.readlink("/proc/%s/cwd" % pid).encode(), path)
        except OSError:
            return None
    return os.fsdecode(path)


def search_memory(report, pid):
    """What a debugger would do: the writable memory of the gateway."""
    what = "/proc/%s/mem" % pid
    seen = 0
    try:
        with open("/proc/%s/maps" % pid) as maps, open(what, "rb", 0) as memory:
            for line in maps:
                span, rights = line.split()[:2]
                start, end = (int(x, 16) for x in span.split("-"))
                if not rights.startswith("rw") or seen + end - start > MEMORY_MAX:
                    continue
                try:
                    memory.seek(start)
                    data = memory.read(end - start)
                except (OSError, OverflowError, ValueError):
                    continue
                seen += len(data)
                if KEY.search(data):
                    report.add(what, "read %d bytes" % seen, data)
                    return
    except OSError as e:
        report.add(what, failure(e))
        return
    report.add(what, "read %d bytes, nothing of its form" % seen)


def find_gateway_key(path=None):
    report = Report()
    environment = "\n".join("%s=%s" % pair for pair in os.environ.items()).encode(
        "utf-8", "surrogateescape")
    report.add("own environment", "%d variables" % len(os.environ), environment)
    names = [path] if path else []
    names += ["/etc/soulacy/config.yaml", "config.yaml",
              os.path.join(os.path.expanduser("~"), ".soulacy", "config.yaml")]
    if "__file__" in globals() and os.path.isabs(__file__):
        here = os.path.dirname(__file__)
        names.append(os.path.normpath(os.path.join(here, "..", "..", "config.yaml")))
    pids = processes()
    gateways = [(pid, words) for pid, words in ((p, command(p)) for p in pids)
                if is_gateway(words)]
    for pid, words in gateways:
        names.append(config_of(pid, words))
    for name in dict.fromkeys(n for n in names if n):
        report.read(name)
    report.add("processes in /proc", "%d visible, %d of them a gateway"
               % (len(pids), len(gateways)))
    for pid, _ in gateways:
        report.read("/proc/%s/environ" % pid)
        search_memory(report, pid)
    report.read("/proc/%d/environ" % os.getppid())
    found = bool(report.found_in)
    return {
        "key_found": found,
        "found_in": report.found_in,
        "summary": "this tool CAN read the gateway's key: it runs with the rights of the "
                   "gateway's user" if found else
                   "this tool could not read the gateway's key",
        "tried": report.tried,
    }
