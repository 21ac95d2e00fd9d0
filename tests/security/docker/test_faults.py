#!/usr/bin/env python3
"""The docker executor against an engine that misbehaves (tests/support/fake_engine.py).

usage: test_faults.py BUILD_DIR"""
import os
import shutil
import socket
import sys
import tempfile
import time
import unittest

from driving import Drive
from fake_engine import FakeEngine, frame

ADD = "def tool():\n    return 42\n"
STEPS = ("create", "inspect", "attach", "wait", "start")


class Faults(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="soulacy-fake-")
        self.sock = os.path.join(self.dir, "engine.sock")

    def tearDown(self):
        shutil.rmtree(self.dir)

    def unavailable(self, end, *words):
        self.assertEqual(end[0], "unavailable", end)
        self.assertIn("executor unavailable", end[4])
        for word in words:
            self.assertIn(word, end[4])

    def test_a_call(self):
        with FakeEngine(self.sock) as e, Drive(self.sock) as d:
            self.assertEqual(d.call(ADD)[::4], ("ok", "42"))
            d.settle()
            self.assertEqual(e.containers, {})
            order = [r[0] for r in e.requests if r[0] in STEPS + ("delete",)]
            self.assertEqual(order, list(STEPS) + ["delete"])

    def test_positive_list(self):
        """Members of the create request, every one of them, and no other."""
        with FakeEngine(self.sock) as e, Drive(self.sock, level="strict") as d:
            self.assertEqual(d.call(ADD)[0], "ok")
            spec = e.specs[0]
            self.assertEqual(set(spec), {
                "Image", "User", "WorkingDir", "Hostname", "OpenStdin", "StdinOnce",
                "AttachStdin", "AttachStdout", "AttachStderr", "Tty", "StopSignal",
                "StopTimeout", "Healthcheck", "Labels", "Entrypoint", "Cmd", "Env",
                "HostConfig"})
            host = spec["HostConfig"]
            self.assertEqual(set(host), {
                "NetworkMode", "ReadonlyRootfs", "CapDrop", "Privileged", "SecurityOpt",
                "IpcMode", "Init", "AutoRemove", "LogConfig", "RestartPolicy", "NanoCpus",
                "PidsLimit", "Memory", "MemorySwap", "Tmpfs", "Ulimits", "Binds"})
            self.assertEqual(spec["Image"], e.image_id, "pinned by id")
            self.assertEqual(spec["User"], "65534:65534")
            self.assertEqual(spec["StopSignal"], "SIGKILL")
            self.assertEqual(spec["Healthcheck"], {"Test": ["NONE"]})
            self.assertEqual(spec["Entrypoint"], ["python3"])
            self.assertEqual(host["NetworkMode"], "none")
            self.assertEqual(host["CapDrop"], ["ALL"])
            self.assertEqual(host["IpcMode"], "none")
            self.assertEqual(host["SecurityOpt"], ["no-new-privileges"])
            self.assertEqual(host["LogConfig"]["Type"], "none")
            self.assertIs(host["ReadonlyRootfs"], True)
            self.assertIs(host["Privileged"], False)
            self.assertEqual(host["Binds"], [])
            self.assertEqual(host["Memory"], host["MemorySwap"])
            limits = {u["Name"]: (u["Soft"], u["Hard"]) for u in host["Ulimits"]}
            self.assertEqual(limits, {"core": (1, 1), "nofile": (256, 256), "cpu": (30, 31),
                                      "fsize": (1 << 26, 1 << 26),
                                      "data": (1 << 29, 1 << 29)})
            # The image's variables are taken away: a name without a value.
            self.assertIn("SECRET", spec["Env"])
            self.assertFalse([x for x in spec["Env"] if x.startswith("SECRET=")])

    def test_chunked_and_dribbled(self):
        for options in ({"chunked": 7}, {"dribble": 1}, {"chunked": 1, "dribble": 3}):
            with FakeEngine(self.sock, **options), Drive(self.sock) as d:
                self.assertEqual(d.call(ADD)[::4], ("ok", "42"), options)

    def test_versions(self):
        with FakeEngine(self.sock, api="1.23"), Drive(self.sock) as d:
            self.unavailable(d.call(ADD), "1.23", "1.24", "update the engine")
        with FakeEngine(self.sock, api="1.99", min_api="1.90"), Drive(self.sock) as d:
            self.unavailable(d.call(ADD), "1.90", "update the gateway")
        with FakeEngine(self.sock, api="9.9"), Drive(self.sock) as d:
            self.unavailable(d.call(ADD), "API version")
        with FakeEngine(self.sock, api="1.24") as e, Drive(self.sock) as d:
            self.assertEqual(d.call(ADD)[0], "ok")
            steps = [r[0] for r in e.requests]
            self.assertLess(steps.index("start"), steps.index("wait"),
                            "next-exit is not known before 1.30")
        with FakeEngine(self.sock, api="1.77", min_api="1.44") as e, Drive(self.sock) as d:
            self.assertEqual(d.call(ADD)[0], "ok")

    def test_no_engine_at_all(self):
        for kind in ("missing", "refused", "not a socket", "noise"):
            if kind == "refused":
                s = socket.socket(socket.AF_UNIX)
                s.bind(self.sock)
                s.close()
            elif kind == "not a socket":
                with open(self.sock, "w") as f:
                    f.write("x")
            with Drive(self.sock) as d:
                began = time.monotonic()
                if kind == "noise":
                    with FakeEngine(self.sock, fail={"ping": (200, "text/plain", "OK"),
                                                     "version": (200, "text/plain", "?")},
                                    api="SSH-2.0"):
                        self.unavailable(d.call(ADD))
                else:
                    self.unavailable(d.call(ADD), "engine.sock")
                self.assertLess(time.monotonic() - began, 5)
                self.assertEqual(d.until(2)[0], 2)
            if os.path.exists(self.sock):
                os.unlink(self.sock)

    def test_plain_text_errors(self):
        for step, text in (("create", "client version 1.99 is too new\n"),
                           ("start", "OCI runtime error"), ("attach", "no"),
                           ("wait", "no"), ("inspect", "no")):
            fail = {step: (400, "text/plain", text)}
            with FakeEngine(self.sock, fail=fail) as e, Drive(self.sock) as d:
                self.unavailable(d.call(ADD), "400", text.strip())
                d.settle()
                self.assertEqual(e.containers, {}, step)

    def test_image(self):
        fail = {"image": (404, "application/json", '{"message":"No such image: x"}')}
        with FakeEngine(self.sock, fail=fail) as e, Drive(self.sock, image="x:1") as d:
            self.unavailable(d.call(ADD), "docker pull x:1")
            e.fail = {}
            d.until(0)
            self.assertEqual(d.call(ADD)[0], "ok", "recovers when it was pulled")
            first = e.specs[-1]["Image"]
            e.image_id = "sha256:" + "cd" * 32
            self.assertEqual(d.call(ADD)[0], "ok")
            self.assertEqual(e.specs[-1]["Image"], first, "the tag was moved: still pinned")

    def test_stalls(self):
        """Each step has its own limit; the call's deadline cuts it short, cancel at once."""
        for step in STEPS:
            with FakeEngine(self.sock, stall=step) as e, Drive(self.sock) as d:
                began = time.monotonic()
                self.assertEqual(d.call(ADD, timeout=700)[0], "timeout", step)
                self.assertLess(time.monotonic() - began, 2.5, step)
                name = d.start(ADD, timeout=60000)
                self.wait_for(lambda e=e, s=step: [r[0] for r in e.requests].count(s) >= 2)
                d.say("cancel " + name)
                began = time.monotonic()
                self.assertEqual(d.end(name)[0], "cancelled", step)
                self.assertLess(time.monotonic() - began, 1.5, step)
                e.stall = None
                d.settle()
                self.assertEqual(d.call(ADD)[0], "ok", step + " afterwards")
                d.settle()
                self.wait_for(lambda e=e: e.containers == {}, 70)

    def wait_for(self, condition, seconds=10):
        by = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), by, "it does not happen")
            time.sleep(0.01)

    def test_dropped_connections(self):
        for step in STEPS:
            with FakeEngine(self.sock, drop=step) as e, Drive(self.sock) as d:
                self.unavailable(d.call(ADD), "closed the connection")
                e.drop = None
                self.assertEqual(d.until(0)[0], 0)
                self.assertEqual(d.call(ADD)[0], "ok", step)
                d.settle()
                self.wait_for(lambda e=e: e.containers == {}, 70)

    def test_frames(self):
        good = {"split": lambda s, data: b"".join(frame(s, data[i:i + 1])
                                                  for i in range(len(data))),
                "zero length": lambda s, data: frame(1, b"") + frame(2, b"") +
                frame(s, data)}
        for name, frames in good.items():
            with FakeEngine(self.sock, frames=frames), Drive(self.sock) as d:
                self.assertEqual(d.call(ADD)[::4], ("ok", "42"), name)
        bad = {"type 3": lambda s, data: frame(3, data),
               "type 0": lambda s, data: frame(0, data),
               "over the cap": lambda s, data: b"\1\0\0\0\x7f\xff\xff\xff" + data,
               "no frames": lambda s, data: b"just text, as with a terminal"}
        for name, frames in bad.items():
            with FakeEngine(self.sock, frames=frames) as e, Drive(self.sock) as d:
                self.unavailable(d.call(ADD), "stream")
                d.settle()
                self.assertEqual(e.containers, {}, name)

    def test_frames_break_during_the_call(self):
        with FakeEngine(self.sock) as e, Drive(self.sock) as d:
            name = d.start("import time\ndef tool():\n    print('x', flush=True)\n"
                           "    time.sleep(0.3)\n    print('y', flush=True)\n"
                           "    time.sleep(5)\n")
            d.wait("log " + name)
            e.frames = lambda s, data: b"\7\0\0\0\0\0\0\1!"
            self.assertEqual(d.end(name)[0], "unknown", "the request was sent")

    def test_delete_answers(self):
        for status in (404, 409):
            fail = {"delete": (status, "application/json", '{"message":"x"}')}
            with FakeEngine(self.sock, fail=fail), Drive(self.sock) as d:
                self.assertEqual(d.call(ADD)[0], "ok")
                self.assertLess(d.settle(), 3000)
        fail = {"delete": (500, "application/json", '{"message":"x"}')}
        with FakeEngine(self.sock, fail=fail) as e, Drive(self.sock) as d:
            self.assertEqual(d.call(ADD)[0], "ok")
            d.settle()
            self.assertEqual(len(e.containers), 1)
            e.fail = {}
            self.wait_for(lambda: not e.containers, 20)

    def test_constraint_forgotten(self):
        """An engine that skips in silence what it does not know is not used."""
        for forget, word in (({"NetworkMode": "bridge"}, "network"),
                             ({"ReadonlyRootfs": False}, "root"),
                             ({"CapDrop": []}, "capabilities"),
                             ({"CapAdd": ["SYS_ADMIN"]}, "capabilities"),
                             ({"SecurityOpt": None}, "privileges"),
                             ({"PidsLimit": None}, "process"), ({"Memory": 0}, "memory"),
                             ({"Ulimits": []}, "files"), ({"Binds": ["/:/x"]}, "volumes")):
            with FakeEngine(self.sock, forget=forget) as e, Drive(self.sock) as d:
                end = d.call(ADD)
                self.assertEqual(end[0], "refused", forget)
                self.assertIn(word, end[4])
                d.settle()
                self.assertEqual(e.containers, {})

    def test_unread_input(self):
        """An engine that takes nothing: the deadline holds, and the container goes."""
        with FakeEngine(self.sock) as e, Drive(self.sock, standby=1) as d:
            self.assertEqual(d.call(ADD)[0], "ok")
            e.mute = True
            d.say("retire")
            began = time.monotonic()
            self.assertEqual(d.call(ADD, timeout=1000)[0], "timeout")
            self.assertLess(time.monotonic() - began, 3)

    def test_bad_settings(self):
        for settings, words in (({"network": "container:abc"}, "docker_network"),
                                ({"network": "ns:/proc/1/ns/net"}, "docker_network"),
                                ({"image": "../x"}, "docker_image"),
                                ({"image": "a b"}, "docker_image"),
                                ({"volumes": "nonsense"}, "docker_volumes"),
                                ({"volumes": "/:/host"}, "docker_volumes"),
                                ({"volumes": "/proc:/p"}, "docker_volumes"),
                                ({"volumes": "/sys:/p"}, "docker_volumes"),
                                ({"volumes": "/dev:/p"}, "docker_volumes"),
                                ({"volumes": "/nowhere-at-all:/p"}, "docker_volumes"),
                                ({"volumes": "relative:/p"}, "docker_volumes"),
                                ({"volumes": self.dir + "/../..:/p"}, "docker_volumes"),
                                ({"volumes": self.dir + ":/proc"}, "docker_volumes"),
                                ({"volumes": self.dir + ":/"}, "docker_volumes")):
            d = Drive(self.sock, **settings)
            d.close()
            self.assertTrue(d.first.startswith("refused"), settings)
            self.assertIn(words, d.first)

    def test_socket_as_volume(self):
        """Neither the engine's socket nor a folder above it, not through a link either."""
        with FakeEngine(self.sock):
            link = os.path.join(self.dir, "link")
            os.symlink(self.dir, link)
            other = tempfile.mkdtemp(prefix="soulacy-vol-")
            out = os.path.join(other, "out")
            os.symlink(self.dir, out)
            try:
                for volume in (self.sock, self.dir, link, out, "/tmp", "/run", "/var/run"):
                    d = Drive(self.sock, volumes=volume + ":/data")
                    d.close()
                    self.assertTrue(d.first.startswith("refused"), (volume, d.first))
                # A link that is turned after the start is seen at the call.
                good = os.path.join(other, "good")
                os.mkdir(good)
                os.unlink(out)
                os.symlink(good, out)
                with Drive(self.sock, volumes=out + ":/data:ro") as d:
                    self.assertEqual(d.call(ADD)[0], "ok")
                    os.unlink(out)
                    os.symlink(self.dir, out)
                    end = d.call(ADD)
                    self.assertEqual(end[0], "refused", end)
            finally:
                shutil.rmtree(other)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
    def test_denied(self):
        with FakeEngine(self.sock):
            os.chmod(self.sock, 0o600)
            os.chmod(self.dir, 0o755)
            with Drive(self.sock, user=65534) as d:
                self.unavailable(d.call(ADD), "socket's group")
                self.assertIn("socket's group", d.until(2)[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
