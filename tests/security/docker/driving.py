"""The line protocol of drive.c, for the tests of the docker executor."""
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1
                        else os.environ.get("SOULACY_BUILD_DIR", "build"))
sys.path.insert(0, os.path.join(TOP, "tests/support"))


class Drive:
    def __init__(self, socket, image="soulacy-test:full", standby=0, level=None, user=None,
                 **more):
        command = [os.path.join(BUILD, "tests/drive"), "--build", BUILD,
                   "--set", "socket=" + socket, "--set", "image=" + image,
                   "--set", "standby=%d" % standby]
        if level:
            command += ["--isolation", level]
        for key, value in more.items():
            command += ["--set", "%s=%s" % (key, value)]
        self.dir = tempfile.mkdtemp(prefix="soulacy-drive-")
        os.chmod(self.dir, 0o755)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, user=user)
        self.lines = queue.Queue()
        self.seen = []
        self.count = 0
        threading.Thread(target=self.read, daemon=True).start()
        self.first = self.wait("ready", "refused")

    def read(self):
        for line in self.process.stdout:
            self.lines.put((time.monotonic(), line.rstrip("\n")))
        self.lines.put((time.monotonic(), "eof"))

    def wait(self, *heads, seconds=60):
        """The next line that begins with one of heads; keeps the others in seen."""
        for i, line in enumerate(self.seen):
            if line.startswith(heads):
                return self.seen.pop(i)
        by = time.monotonic() + seconds
        while True:
            try:
                self.at, line = self.lines.get(timeout=max(0.01, by - time.monotonic()))
            except queue.Empty:
                raise AssertionError("no line %s; seen: %s" % (heads, self.seen)) from None
            if line.startswith(heads):
                return line
            if line == "eof":
                raise AssertionError("ended before %s; seen: %s" % (heads, self.seen))
            self.seen.append(line)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def start(self, source, timeout=20000, more=""):
        self.count += 1
        name = "c%d" % self.count
        path = os.path.join(self.dir, name + ".py")
        with open(path, "w") as f:
            f.write(source)
        self.say("run %s %d %s %s" % (name, timeout, path, more))
        return name

    def end(self, name, seconds=60):
        """(cause, from stock, start ms, run ms, text)"""
        words = self.wait("end %s " % name, seconds=seconds).split(" ", 6)
        # Whether it was from stock is told after the answer: the time to a process shows
        # it too, since no container starts within 80 ms.
        return (words[2], int(words[4]) < 80, int(words[4]), int(words[5]), words[6])

    def call(self, source, timeout=20000, more="", seconds=60):
        return self.end(self.start(source, timeout, more), seconds)

    def settle(self):
        self.say("settle")
        return int(self.wait("settled", seconds=70).split()[1])

    def health(self):
        self.say("health")
        _, state, text = self.wait("health").split(" ", 2)
        return int(state), text

    def until(self, state, seconds=20):
        """Wait until health says so."""
        by = time.monotonic() + seconds
        while True:
            got = self.health()
            if got[0] == state or time.monotonic() > by:
                return got
            time.sleep(0.02)

    def check(self):
        self.say("check")
        _, status, text = self.wait("check").split(" ", 2)
        return status, text

    def close(self):
        if self.process.poll() is None:
            try:
                self.say("quit")
            except OSError:
                pass
        try:
            self.process.stdin.close()
        except OSError:
            pass
        self.process.wait(60)
        shutil.rmtree(self.dir, ignore_errors=True)
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
