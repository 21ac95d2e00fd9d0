#!/usr/bin/python3
"""The figures that need a running gateway: process_overhead, own_rss_mb, ready, rss_slope.

Usage: figures.py BUILD_DIR [--short]. Prints one JSON object a line. Exit 1 when a figure
misses its target, 2 when something could not be measured."""
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

KEY = "sy_" + "ab" * 32
TOOL = "def add(a, b):\n    return a + b\n"
SOUL = """id: bench
name: Bench
tools:
  - name: add
    description: Add two numbers
    python_file: add.py
    parameters:
      type: object
      required: [a, b]
      properties: {a: {type: integer}, b: {type: integer}}
"""

failed = False


def figure(name, value, target, at_least=False):
    global failed
    ok = value >= target if at_least else value <= target
    failed = failed or not ok
    print(json.dumps({"name": name, "value": round(value, 4), "target": target, "ok": ok}),
          flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Gateway:
    def __init__(self, build, isolation):
        self.build = build
        self.dir = tempfile.mkdtemp(prefix="soulacy-bench-")
        os.chmod(self.dir, 0o755)
        self.port = free_port()
        agent = os.path.join(self.dir, "agents", "bench")
        os.makedirs(agent)
        self.tool = os.path.join(agent, "add.py")
        self.write(self.tool, TOOL)
        self.write(os.path.join(agent, "SOUL.yaml"), SOUL)
        self.config = os.path.join(self.dir, "config.yaml")
        self.write(self.config, f"""server: {{port: {self.port}, api_key: {KEY}, rate_limit_per_minute: 1000000}}
runtime:
  state_dir: {self.dir}/state
  python_bin: /usr/bin/python3
  sandbox: {{isolation: {isolation}}}
agent_dirs: [{self.dir}/agents]
log: {{level: warn}}
""")
        os.chmod(self.config, 0o600)

    @staticmethod
    def write(path, text):
        with open(path, "w") as f:
            f.write(text)

    def start(self):
        program = os.path.join(self.build, "bin", "soulacy")
        begin = time.perf_counter()
        # What the test runner exports is no setting of ours.
        env = {k: v for k, v in os.environ.items() if not k.startswith("SOULACY_")}
        self.process = subprocess.Popen([program, "serve", "--config", self.config],
                                        stdout=subprocess.DEVNULL, env=env)
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as s:
                    s.sendall(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % self.port)
                    if s.recv(64).startswith(b"HTTP/1.1 200"):
                        return (time.perf_counter() - begin) * 1000
            except OSError:
                pass
            if self.process.poll() is not None:
                sys.exit("figures: the gateway ended")
            if time.perf_counter() - begin > 20:
                sys.exit("figures: the gateway is not ready after 20 s")
            time.sleep(0.0005)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)

    def memory(self):
        return rollup(self.process.pid)

    def calls(self, n, threads=1):
        """n calls, spread over threads; stops the measurement at the first wrong answer."""
        body = json.dumps({"agent_id": "bench", "tool": "add", "args": {"a": 40, "b": 2}})
        headers = {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"}
        errors = []

        def work(count):
            c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            for _ in range(count):
                c.request("POST", "/api/v1/tools/run", body, headers)
                r = c.getresponse()
                text = r.read()
                if r.status != 200 or json.loads(text).get("result") != "42":
                    errors.append(text[:300])
                    return
            c.close()

        each = [threading.Thread(target=work, args=(n // threads,)) for _ in range(threads)]
        for t in each:
            t.start()
        for t in each:
            t.join()
        if errors:
            sys.exit(f"figures: a call failed: {errors[0]!r}")


def process_overhead(build, rounds):
    for isolation, target in (("none", 1.15), ("strict", 1.45)):
        g = Gateway(build, isolation)
        g.start()
        g.calls(2)
        r = subprocess.run([os.path.join(build, "bench", "bench_tool_run"),
                            f"process_overhead_{isolation}", str(target), str(g.port), KEY,
                            "bench", "/usr/bin/python3", g.tool, str(rounds)],
                           capture_output=True, text=True, timeout=300)
        g.stop()
        if r.returncode != 0:
            sys.exit("figures: " + r.stderr)
        line = json.loads(r.stdout)
        figure(line["name"], line["value"], line["target"])


def rollup(pid):
    rss = pss = 0
    with open(f"/proc/{pid}/smaps_rollup") as f:
        for line in f:
            if line.startswith("Rss:"):
                rss = int(line.split()[1])
            elif line.startswith("Pss:"):
                pss = int(line.split()[1])
    return rss / 1024, pss / 1024


def own_rss(build):
    g = Gateway(build, "none")
    base = subprocess.Popen([os.path.join(build, "bench", "bare_libs"),
                             os.path.join(g.dir, "bare.db")],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    base.stdout.readline()
    g.start()
    g.calls(100)
    rss, pss = g.memory()
    base_rss, base_pss = rollup(base.pid)
    base.stdin.close()
    base.wait(10)
    g.stop()
    figure("own_rss_mb", rss - base_rss, 3)
    figure("own_rss_total_mb", rss, 11)
    figure("own_pss_total_mb", pss, 9)


def ready(build, rounds):
    g = Gateway(build, "none")
    ours, bare = [], []
    g.start()
    g.stop()
    for _ in range(rounds):
        ours.append(g.start())
        g.stop()
        begin = time.perf_counter()
        subprocess.run(["/usr/bin/python3", "-I", "-c", "pass"], check=True)
        bare.append((time.perf_counter() - begin) * 1000)
    figure("ready", statistics.median(ours) / statistics.median(bare), 1.5)


def rss_slope(build):
    g = Gateway(build, "none")
    g.start()
    g.calls(500, 4)
    before, _ = g.memory()
    g.calls(1500, 4)
    after, _ = g.memory()
    g.stop()
    figure("rss_slope", after - before, 0.3)


def main():
    build = os.path.abspath(sys.argv[1])
    short = "--short" in sys.argv
    process_overhead(build, 25 if short else 101)
    own_rss(build)
    ready(build, 7 if short else 21)
    if not short:
        rss_slope(build)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
