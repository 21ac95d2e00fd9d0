#!/usr/bin/env python3
"""The docker executor on a real engine, which this test starts, breaks and removes.

usage: test_docker.py BUILD_DIR   (exit 77 where no engine can be started)"""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from driving import BUILD, TOP, Drive

ENV = os.path.join(TOP, "tests/support/docker_env.sh")
LONG = os.environ.get("SOULACY_LONG") == "1"
DIR = tempfile.mkdtemp(prefix="soulacy-docker-", dir="/tmp")
SOCK = os.path.join(DIR, "docker.sock")
ADD = "def tool():\n    return 42\n"
SLEEP = ("import time\ndef tool():\n    print('here', flush=True)\n"
         "    time.sleep(100)\n")
# A daemon that nothing but the end of its container reaches.
DAEMON = """import os, signal, time
def tool():
    for s in range(1, 32):
        try:
            if s != signal.SIGCHLD:
                signal.signal(s, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(54321)
        os._exit(0)
    os.wait()
    print('here', flush=True)
    time.sleep(54321)
"""


def engine(*words):
    return subprocess.run([ENV, *words, DIR], check=False, capture_output=True, text=True,
                          timeout=300)


class Api(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCK)


def api(method, path, body=None):
    c = Api("engine", timeout=60)
    c.request(method, path, body=json.dumps(body) if body is not None else None,
              headers={"Content-Type": "application/json"})
    answer = c.getresponse().read()
    c.close()
    return json.loads(answer) if answer else None


def containers():
    return api("GET", "/containers/json?all=1")


def processes(text):
    found = []
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    if text in f.read():
                        found.append(int(pid))
            except OSError:
                pass
    return found


def in_containers():
    """Pids of what runs in this engine's containers."""
    return processes(b"_0=b.read") + processes(b"b=sys.stdin.buffer")


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def rss_kb(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(next(x for x in f if x.startswith("VmRSS")).split()[1])


class Docker(unittest.TestCase):
    def tearDown(self):
        self.wait_for(lambda: containers() == [])

    def wait_for(self, condition, seconds=20):
        by = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), by, "it does not happen")
            time.sleep(0.02)

    def stocked(self, d, n, seconds=20):
        self.wait_for(lambda: json.loads(d.check()[1])["ready"] == n, seconds)

    def test_check(self):
        with Drive(SOCK) as d:
            status, text = d.check()
            self.assertEqual(status, "ok", text)
            found = json.loads(text)
            self.assertTrue(found["digest"].startswith("sha256:"))
            self.assertIn("no network", found["layers"])
            self.assertEqual(d.until(0)[0], 0)
        with Drive(SOCK, image="nobody/has-this:1") as d:
            status, text = d.check()
            self.assertEqual(status, "i/o")
            self.assertIn("docker pull nobody/has-this:1", text)
            end = d.call(ADD)
            self.assertEqual(end[0], "unavailable")
            self.assertIn("docker pull nobody/has-this:1", end[4])

    def test_stock(self):
        with Drive(SOCK, standby=2) as d:
            self.assertFalse(d.call(ADD)[1])
            self.stocked(d, 2)
            first = {c["Id"] for c in containers()}
            for _ in range(2):
                end = d.call(ADD)
                self.assertEqual(end[::4], ("ok", "42"))
                self.assertTrue(end[1])
            d.settle()
            self.stocked(d, 2)
            self.assertFalse(first & {c["Id"] for c in containers()}, "used once only")
            # Killed while idle: noticed, replaced, never handed out.
            victim = containers()[0]["Id"]
            api("POST", "/containers/%s/kill" % victim)
            self.assertEqual(d.call(ADD)[0], "ok")
            d.settle()
            self.stocked(d, 2)
            d.say("retire")
            self.wait_for(lambda: containers() == [])
            self.assertFalse(d.call(ADD)[1])

    def test_max_idle(self):
        with Drive(SOCK, standby=2, max_idle=3) as d:
            for mem in (300, 301, 302):
                self.assertEqual(d.call(ADD, more=str(mem))[0], "ok")
            d.settle()
            self.stocked(d, 3)
            # The last used one gets some, at the cost of the one used longest ago.
            self.wait_for(lambda: d.call(ADD, more="302")[1])
            d.settle()
            self.stocked(d, 3)
            self.assertLessEqual(len(containers()), 4)

    def test_cancel_reaches_daemons(self):
        for standby in (0, 1):
            with Drive(SOCK, standby=standby) as d:
                self.assertEqual(d.call(ADD)[0], "ok")
                d.settle()
                if standby:
                    self.stocked(d, 1)
                name = d.start(DAEMON, timeout=60000)
                d.wait("log " + name)
                took = self.until_gone(d, name)
                self.assertLessEqual(took, 1.5)
                print("cancel to last process gone: %.3f s" % took)

    def until_gone(self, d, name):
        pids = []
        for c in containers():
            if c["State"] == "running":
                rows = api("GET", "/containers/%s/top" % c["Id"])["Processes"]
                pids += [int(row[1]) for row in rows]
        mine = [p for p in pids if self.is_ours(p)]
        self.assertGreaterEqual(len(mine), 2, "the tool and its daemon")
        began = time.monotonic()
        d.say("cancel " + name)
        while any(os.path.exists("/proc/%d" % p) for p in mine):
            self.assertLess(time.monotonic() - began, 10)
            time.sleep(0.005)
        took = time.monotonic() - began
        self.assertEqual(d.end(name)[0], "cancelled")
        return took

    def is_ours(self, pid):
        try:
            with open("/proc/%d/status" % pid) as f:
                text = f.read()
            # The tool ignores every signal it can; init and idle interpreters do not.
            ignored = int(text.split("SigIgn:")[1].split()[0], 16)
            return bin(ignored).count("1") > 20
        except (OSError, IndexError):
            return False

    def test_timeout(self):
        with Drive(SOCK) as d:
            began = time.monotonic()
            self.assertEqual(d.call(SLEEP, timeout=1500)[0], "timeout")
            self.assertLess(time.monotonic() - began, 3)

    def test_both_ways_at_once(self):
        """50 MB in and out: neither side waits for the other."""
        source = ("DATA = '%s'\ndef tool():\n    import sys\n"
                  "    for i in range(200):\n        sys.stderr.write('y' * 5000 + '\\n')\n"
                  "    return 'x' * (40 * 1024 * 1024)\n" % ("z" * 900000))
        with Drive(SOCK, standby=1) as d:
            end = d.call(source, timeout=60000)
            self.assertEqual(end[0], "ok", end)

    def test_many_at_once(self):
        with Drive(SOCK, standby=1) as d:
            names = [d.start(ADD, timeout=60000) for _ in range(8)]
            for name in names:
                self.assertEqual(d.end(name, 90)[::4], ("ok", "42"))

    def test_fork_bomb_is_held(self):
        source = ("import os, time\ndef tool():\n    n = 0\n    try:\n"
                  "        while n < 2000:\n            if os.fork() == 0:\n"
                  "                time.sleep(1000)\n            n += 1\n"
                  "    except OSError:\n        pass\n    return n\n")
        with Drive(SOCK) as d:
            end = d.call(source, timeout=60000)
            self.assertEqual(end[0], "ok", end)
            self.assertLess(int(end[4]), 512)

    def test_memory_of_all_processes(self):
        """What a process limit cannot hold, since there are many: the container's does."""
        source = ("import os\ndef tool():\n    r, w = os.pipe()\n    for i in range(6):\n"
                  "        if os.fork() == 0:\n            x = bytearray(180 << 20)\n"
                  "            os.write(w, b'x')\n            os.read(r, 1000)\n"
                  "            import time; time.sleep(1000)\n"
                  "    import time; time.sleep(8)\n    return 'done'\n")
        with Drive(SOCK) as d:
            end = d.call(source, timeout=30000, more="200")
            self.assertIn(end[0], ("ok", "memory", "signal"))
            d.settle()

    def test_what_a_tool_cannot(self):
        source = """import os, socket, errno
def attempt(f):
    try:
        f()
        return 'DONE'
    except OSError as e:
        return errno.errorcode.get(e.errno, '?')
    except Exception as e:
        return type(e).__name__
def connect(family, to, kind=socket.SOCK_STREAM, proto=0):
    s = socket.socket(family, kind, proto)
    s.settimeout(2)
    s.connect(to)
def udp():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('10.0.0.1', 53))
def fast_open():
    s = socket.socket(); s.settimeout(2)
    s.sendto(b'x', 0x20000000, ('10.0.0.1', 80))
def raise_limit():
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard * 2, hard * 2))
def libc(name, *args):
    import ctypes
    lib = ctypes.CDLL(None, use_errno=True)
    if getattr(lib, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), name)
def syscall(number, *args):
    libc('syscall', number, *args)
def tool():
    out = {}
    tests = {
        'write /etc/x': lambda: open('/etc/x', 'w'),
        'write /usr/x': lambda: open('/usr/x', 'w'),
        'read /etc/shadow': lambda: open('/etc/shadow').read(),
        'docker socket': lambda: connect(socket.AF_UNIX, '/var/run/docker.sock'),
        'host socket': lambda: connect(socket.AF_UNIX, '@SOCK@'),
        'abstract': lambda: connect(socket.AF_UNIX, '\\0soulacy-canary'),
        'tcp': lambda: connect(socket.AF_INET, ('10.0.0.1', 80)),
        'mptcp': lambda: connect(socket.AF_INET, ('10.0.0.1', 80), proto=262),
        'fast open': fast_open,
        'udp': udp,
        'host loopback': lambda: connect(socket.AF_INET, ('127.0.0.1', @PORT@)),
        'raise limit': raise_limit,
        'setuid 0': lambda: os.setuid(0),
        'chroot': lambda: os.chroot('/tmp'),
        'mount': lambda: libc('mount', b'none', b'/tmp', b'tmpfs', 0, None),
        'unshare': lambda: libc('unshare', 0x10000000),
        'ptrace gateway': lambda: libc('ptrace', 16, @PID@, 0, 0),
        'kill gateway': lambda: os.kill(@PID@, 9),
        'gateway /proc': lambda: open('/proc/@PID@/environ').read(),
        'exec in /tmp': lambda: (open('/tmp/x', 'w').write('#!/bin/sh\\n'),
                                 os.chmod('/tmp/x', 0o755), os.execv('/tmp/x', ['x'])),
        'sysrq': lambda: open('/proc/sysrq-trigger', 'w').write('h'),
        'kernel memory': lambda: open('/proc/kcore', 'rb').read(1) or 1 / 0,
    }
    for name, f in tests.items():
        out[name] = attempt(f)
    status = open('/proc/self/status').read()
    for key in ('NoNewPrivs', 'CapEff', 'CapBnd', 'CapPrm', 'Uid', 'Seccomp'):
        out[key] = status.split(key + ':')[1].split('\\n')[0].split()[0]
    out['names'] = sorted(n for n in os.environ)
    out['init'] = open('/proc/1/comm').read().strip()
    out['fds'] = len(os.listdir('/proc/self/fd')) < 8
    out['interfaces'] = [n for _, n in socket.if_nameindex()]
    return out
"""
        listener = socket.create_server(("127.0.0.1", 0))
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind("\0soulacy-canary")
        abstract.listen()
        with Drive(SOCK, level="strict") as d:
            source = source.replace("@SOCK@", SOCK).replace(
                "@PORT@", str(listener.getsockname()[1])).replace(
                    "@PID@", str(d.process.pid))
            end = d.call(source, timeout=60000)
            self.assertEqual(end[0], "ok", end)
            out = json.loads(end[4])
            done = [k for k, v in out.items() if v == "DONE"]
            self.assertEqual(done, [], out)
            self.assertEqual(out["NoNewPrivs"], "1")
            self.assertEqual(out["Uid"], "65534")
            self.assertEqual(int(out["CapEff"], 16) | int(out["CapBnd"], 16) |
                             int(out["CapPrm"], 16), 0)
            self.assertEqual(set(out["names"]) - {"LC_CTYPE", "HOSTNAME"},
                             {"HOME", "LANG", "PATH", "TMPDIR"})
            self.assertTrue(out["fds"])
            self.assertEqual(out["interfaces"], ["lo"])
        listener.close()
        abstract.close()

    def test_volumes(self):
        with tempfile.TemporaryDirectory(prefix="soulacy-vol-") as host:
            os.chmod(host, 0o777)
            with open(os.path.join(host, "x"), "w") as f:
                f.write("from the host")
            source = ("def tool():\n    out = [open('/data/x').read()]\n"
                      "    try:\n        open('/data/y', 'w').write('1')\n"
                      "        out.append('written')\n    except OSError as e:\n"
                      "        out.append(e.errno)\n    return out\n")
            with Drive(SOCK, volumes=host + ":/data:ro") as d:
                self.assertEqual(d.call(source)[4], '["from the host", 30]')
            with Drive(SOCK, volumes=host + ":/data") as d:
                self.assertEqual(d.call(source)[4], '["from the host", "written"]')
            os.unlink(os.path.join(host, "y"))

    def test_200_calls_leave_nothing(self):
        calls = 1000 if LONG else 200
        mounts = self.mounts()
        with Drive(SOCK, standby=1) as d:
            for i in range(calls + 20):
                if i % 20 == 0:
                    self.assertGreaterEqual(d.settle(), 0)
                if i == 20:
                    self.stocked(d, 1)
                    fds, rss = descriptors(d.process.pid), rss_kb(d.process.pid)
                self.assertEqual(d.call(ADD)[0], "ok")
            d.settle()
            self.stocked(d, 1)
            self.wait_for(lambda: len(containers()) == 1)
            grown = rss_kb(d.process.pid) - rss
            print("%d calls: RSS grew by %d KB" % (calls, grown))
            self.assertLessEqual(descriptors(d.process.pid), fds)
            self.assertLess(grown, 1024)
        self.assertEqual(containers(), [])
        self.wait_for(lambda: self.mounts() <= mounts)

    def mounts(self):
        with open("/proc/self/mountinfo") as f:
            return sum(1 for line in f if DIR in line)

    # ---- the engine goes away ----

    def lose(self, verb):
        with Drive(SOCK, standby=1) as d:
            self.assertEqual(d.call(ADD)[0], "ok")
            self.stocked(d, 1)
            d.settle()
            name = d.start(SLEEP, timeout=120000)
            d.wait("log " + name)
            engine(verb)
            began = time.monotonic()
            end = d.end(name, 30)
            # With TERM the engine kills the container first, and that may be seen.
            self.assertIn(end[0], ("unknown",) if verb == "kill" else ("unknown", "signal"))
            self.assertLess(time.monotonic() - began, 12)
            state, text = d.until(2)
            self.assertEqual(state, 2)
            self.assertIn("executor unavailable", text)
            end = d.call(ADD)
            self.assertEqual(end[0], "unavailable", end)
            self.assertIn("executor unavailable", end[4])
            began = time.monotonic()
            self.assertEqual(engine("start").returncode, 0)
            self.assertEqual(d.until(0, 60)[0], 0)
            self.assertEqual(d.call(ADD, timeout=60000, seconds=90)[0], "ok")
            d.settle()
            self.wait_for(lambda: len(containers()) <= 1, 90)
        self.wait_for(lambda: containers() == [], 60)

    def test_engine_killed(self):
        self.lose("kill")

    def test_engine_terminated(self):
        self.lose("term")

    def test_engine_not_there_at_start(self):
        engine("term")
        try:
            with Drive(SOCK) as d:
                self.assertEqual(d.call(ADD)[0], "unavailable")
                self.assertEqual(engine("start").returncode, 0)
                d.until(0)
                self.assertEqual(d.call(ADD)[0], "ok")
        finally:
            engine("start")

    # ---- other gateways ----

    def test_two_gateways_and_a_dead_one(self):
        with Drive(SOCK, standby=1) as a:
            self.assertEqual(a.call(ADD)[0], "ok")
            a.settle()
            self.stocked(a, 1)
            of_a = containers()[0]["Id"]
            b = Drive(SOCK, standby=1)
            self.assertEqual(b.call(ADD)[0], "ok")
            self.stocked(b, 1)
            name = b.start(DAEMON, timeout=60000)
            b.wait("log " + name)
            of_b = {c["Id"] for c in containers()} - {of_a}
            os.kill(b.process.pid, signal.SIGKILL)
            b.kill()
            # A third one sweeps at its start: what was b's, and nothing of a's.
            with Drive(SOCK) as c:
                c.until(0)
                self.wait_for(lambda: not of_b & {x["Id"] for x in containers()})
                self.assertIn(of_a, {x["Id"] for x in containers()})
            b.close()
            self.assertTrue(a.call(ADD)[1], "a's stock is as it was")

    def test_others_are_left_alone(self):
        """Labels of the like that must not be judged from here."""
        import_id = api("GET", "/images/soulacy-test:full/json")["Id"]
        own = open("/proc/sys/kernel/random/boot_id").read().strip()
        machine = "-"
        if os.path.exists("/etc/machine-id"):
            machine = open("/etc/machine-id").read().strip() or "-"
        ns = os.readlink("/proc/self/ns/pid")
        foreign = {
            "no label": {},
            "garbage": {"soulacy.owner": "x"},
            "other machine": {"soulacy.owner": "0123456789abcdef m %s %s 99999999 1" %
                              (own, ns)},
            "other namespace": {"soulacy.owner":
                                "0123456789abcdef %s %s pid:[1] 99999999 1" %
                                (machine, own)},
            "alive": {"soulacy.owner": "0123456789abcdef %s %s %s %d %s" % (
                machine, own, ns, os.getpid(),
                open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])},
        }
        dead = {"soulacy.owner": "0123456789abcdef %s %s %s %d 1" %
                                 (machine, own, ns, os.getpid())}
        ids = {}
        for name, labels in list(foreign.items()) + [("dead", dead)]:
            ids[name] = api("POST", "/containers/create", {
                "Image": import_id, "Cmd": ["true"], "Labels": labels})["Id"]
        try:
            with Drive(SOCK) as d:
                self.assertEqual(d.call(ADD)[0], "ok")
                self.wait_for(lambda: ids["dead"] not in {c["Id"] for c in containers()})
                time.sleep(0.5)
                left = {c["Id"] for c in containers()}
                for name in foreign:
                    self.assertIn(ids[name], left, name)
        finally:
            for i in ids.values():
                api("DELETE", "/containers/%s?force=1" % i)

    def test_no_python_in_the_image(self):
        root = tempfile.mkdtemp(prefix="soulacy-img-")
        try:
            os.makedirs(os.path.join(root, "tmp"))
            tar = subprocess.run(["tar", "-C", root, "-cf", "-", "."], check=True,
                                 capture_output=True).stdout
            c = Api("engine", timeout=60)
            c.request("POST", "/images/create?fromSrc=-&repo=soulacy-test&tag=empty",
                      body=tar, headers={"Content-Type": "application/x-tar"})
            c.getresponse().read()
            with Drive(SOCK, image="soulacy-test:empty") as d:
                end = d.call(ADD)
                self.assertEqual(end[0], "unavailable", end)
                self.assertIn("no python3", end[4])
        finally:
            shutil.rmtree(root)


if __name__ == "__main__":
    begun = engine("start")
    if begun.returncode == 0:
        begun = engine("images")
    if begun.returncode != 0:
        print(begun.stderr)
        engine("stop")
        sys.exit(begun.returncode)
    try:
        unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2, warnings="ignore")
    finally:
        engine("stop")
