#!/usr/bin/env python3
"""What a tool run must never leave behind or show, seen from outside the gateway.

usage: test_exec.py BUILD_DIR   (the program that stands for the gateway is run_case)
"""
import os
import select
import signal
import subprocess
import sys
import tempfile
import unittest

BUILD = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("SOULACY_BUILD_DIR", "build")
PYTHON = "/usr/bin/python3"

DAEMONS = '''#: {"timeout_ms": 60000, "env": ["TOKEN=canary-env-5512"], "args": {"x": "canary-args-5512"}}
import os
import signal
import time

CANARY = "canary-source-5512"


def tool(x):
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(s, signal.SIG_IGN)
    ready, write = os.pipe()  # closed by exec: its end says that sleep runs
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sleep", ["sleep", "1000"])
        os._exit(0)
    os.close(write)
    os.wait()
    os.read(ready, 1)
    with open(%r, "w") as f:
        f.write("ready")
    time.sleep(1000)
'''


def processes(mark):
    """Processes with the run's mark in the environment they were started with."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as f:
                if mark in f.read():
                    found.append(int(name))
        except OSError:
            pass
    return found


def read_proc(pid, name):
    with open("/proc/%d/%s" % (pid, name), "rb") as f:
        return f.read()


def wait_gone(pids, seconds):
    """Those of the processes that are still alive after that time."""
    left = []
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([fd], [], [], seconds)[0]:
                left.append(pid)
        finally:
            os.close(fd)
    return left


class Gateway:
    """run_case with one tool that has daemons, up to the moment they all run."""

    def __init__(self, level):
        self.dir = tempfile.mkdtemp(prefix="soulacy-exec-")
        os.chmod(self.dir, 0o777)
        self.fifo = os.path.join(self.dir, "ready")
        case = os.path.join(self.dir, "case.py")
        with open(case, "w") as f:
            f.write(DAEMONS % self.fifo)
        os.mkfifo(self.fifo, 0o666)
        os.chmod(self.fifo, 0o666)
        self.process = subprocess.Popen(
            [os.path.join(BUILD, "tests/run_case"), "--build", BUILD, "--isolation", level,
             "--python", PYTHON, case], stdout=subprocess.DEVNULL)
        with open(self.fifo) as f:
            assert f.read() == "ready"
        self.pids = processes(b"SOULACY_TEST_MARK=%d-" % self.process.pid)

    def close(self):
        self.process.kill()
        self.process.wait()
        subprocess.run(["rm", "-rf", self.dir], check=True)


class Exec(unittest.TestCase):
    def test_killed_gateway_leaves_nothing(self):
        for _ in range(5):
            g = Gateway("none")
            try:
                # The tool, and its daemon; maybe the supervisor too.
                self.assertGreaterEqual(len(g.pids), 2)
                g.process.send_signal(signal.SIGKILL)
                g.process.wait()
                self.assertEqual(wait_gone(g.pids, 5), [])
                self.assertEqual(processes(b"SOULACY_TEST_MARK=%d-" % g.process.pid), [])
            finally:
                g.close()

    def test_nothing_of_a_call_is_visible(self):
        g = Gateway("none")
        try:
            seen = 0
            for pid in g.pids:
                before, environ, after = (
                    read_proc(pid, name) for name in ("cmdline", "environ", "cmdline"))
                self.assertNotIn(b"canary", before + after)
                # What the tool itself starts inherits the agent's environment from it, as
                # any child does; what the gateway started must not show it.
                if b"stdin.buffer" in before and before == after:
                    self.assertNotIn(b"canary", environ)
                    seen += 1
            self.assertGreaterEqual(seen, 1)
        finally:
            g.close()

    def test_tool_holds_no_descriptor_of_the_gateway(self):
        g = Gateway("none")
        try:
            for pid in g.pids:
                for fd in os.listdir("/proc/%d/fd" % pid):
                    try:
                        target = os.readlink("/proc/%d/fd/%s" % (pid, fd))
                    except OSError:
                        continue
                    self.assertTrue(target.startswith(("pipe:", "/dev/null", g.dir)),
                                    "%s -> %s" % (fd, target))
        finally:
            g.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
