#!/usr/bin/env python3
"""A container engine that misbehaves on demand, for what real ones will not do.

    from fake_engine import FakeEngine
    with FakeEngine(path, stall="create") as e: ...

It speaks enough of the API for the docker executor. Its "containers" run the command on
this host without any isolation, with their streams framed. What it did is in e.requests.

Options (attributes, may be changed while it runs):
    api, min_api      versions it claims
    stall             name of a step at which it never answers: ping version image create
                      inspect attach wait start delete list
    fail              {step: (status, content type, body)}
    drop              name of a step at which it closes the connection without an answer
    chunked           answers in chunks of this many bytes
    dribble           sends each answer and frame in pieces of this many bytes
    frames            function (stream, data) -> bytes on the wire, instead of real framing
    mute              the attached stream is not read: what the client writes piles up
    image_id, image_env
"""
import json
import os
import re
import socket
import socketserver
import struct
import subprocess
import threading

PYTHON = "/usr/bin/python3"


def frame(stream, data):
    return struct.pack(">BxxxL", stream, len(data)) + data


class Container:
    def __init__(self, name, spec):
        self.name = name
        self.spec = spec
        self.id = os.urandom(32).hex()
        self.process = None
        self.streams = []
        self.ended = threading.Event()
        self.removed = False
        self.code = 0
        self.lock = threading.Lock()

    def send(self, engine, stream, data):
        wire = engine.frames(stream, data) if engine.frames else frame(stream, data)
        step = engine.dribble or len(wire) or 1
        with self.lock:
            for s in self.streams:
                try:
                    for i in range(0, len(wire), step):
                        s.sendall(wire[i:i + step])
                except OSError:
                    pass

    def start(self, engine):
        command = [PYTHON] + self.spec["Cmd"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True, bufsize=0,
            env={"PATH": "/usr/bin:/bin", "TMPDIR": "/tmp", "LANG": "C.UTF-8"})

        def pump(pipe, stream):
            while True:
                data = os.read(pipe.fileno(), 32768)
                if not data:
                    break
                self.send(engine, stream, data)

        pumps = [threading.Thread(target=pump, args=(self.process.stdout, 1), daemon=True),
                 threading.Thread(target=pump, args=(self.process.stderr, 2), daemon=True)]
        for p in pumps:
            p.start()

        def finish():
            code = self.process.wait()
            for p in pumps:
                p.join(5)
            self.code = 128 - code if code < 0 else code
            self.ended.set()
            with self.lock:
                for s in self.streams:
                    try:
                        s.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
        threading.Thread(target=finish, daemon=True).start()

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, 9)
        self.ended.set()


class Handler(socketserver.BaseRequestHandler):
    def read_head(self):
        data = b""
        while b"\r\n\r\n" not in data:
            block = self.request.recv(1)
            if not block:
                return None
            data += block
        lines = data.decode("latin-1").split("\r\n")
        self.headers = {k.lower(): v.strip() for k, _, v in
                        (line.partition(":") for line in lines[1:] if line)}
        return lines[0].split(" ")

    def body(self):
        left = int(self.headers.get("content-length", 0))
        data = b""
        while len(data) < left:
            data += self.request.recv(left - len(data))
        return data

    def put(self, data):
        step = self.engine.dribble or len(data) or 1
        for i in range(0, len(data), step):
            self.request.sendall(data[i:i + step])

    def answer(self, status, value=b"", kind="application/json", extra=""):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        head = "HTTP/1.1 %d X\r\nContent-Type: %s\r\nApi-Version: %s\r\n%s" % (
            status, kind, self.engine.api, extra)
        n = self.engine.chunked
        if status == 204:
            self.put((head + "\r\n").encode())
        elif n:
            parts = [data[i:i + n] for i in range(0, len(data), n)]
            wire = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts)
            self.put((head + "Transfer-Encoding: chunked\r\n\r\n").encode() + wire +
                     b"0\r\n\r\n")
        else:
            self.put((head + "Content-Length: %d\r\n\r\n" % len(data)).encode() + data)

    def handle(self):
        self.engine = self.server.engine
        words = self.read_head()
        if words is None:
            return
        try:
            self.route(words[0], words[1])
        except (BrokenPipeError, ConnectionResetError):
            pass

    def gate(self, step, method, path):
        """False: this request has been dealt with by a fault."""
        e = self.engine
        e.requests.append((step, method, path))
        if e.stall == step:
            self.request.settimeout(120)
            try:
                while self.request.recv(65536):
                    pass
            except OSError:
                pass
            return False
        if e.drop == step:
            return False
        if step in e.fail:
            status, kind, text = e.fail[step]
            self.answer(status, text.encode(), kind)
            return False
        return True

    def route(self, method, path):
        e = self.engine
        path, _, query = path.partition("?")
        path = re.sub(r"^/v\d+\.\d+", "", path)
        found = re.match(r"/containers/([^/]+)(?:/(\w+))?$", path)
        steps = {"/_ping": "ping", "/version": "version", "/containers/create": "create",
                 "/containers/json": "list"}
        step = steps.get(path)
        if step is None and path.startswith("/images/"):
            step = "image"
        if step is None and found:
            step = {"json": "inspect", "attach": "attach", "wait": "wait",
                    "start": "start", None: "delete"}.get(found.group(2))
        if step is None:
            return self.answer(404, {"message": "page not found"})
        body = self.body()
        if not self.gate(step, method, path):
            return None
        if step == "ping":
            return self.answer(200, b"OK", "text/plain")
        if step == "version":
            return self.answer(200, {"Version": "fake", "ApiVersion": e.api,
                                     "MinAPIVersion": e.min_api})
        if step == "image":
            return self.answer(200, {"Id": e.image_id, "Config": {"Env": e.image_env}})
        if step == "create":
            c = Container(query.partition("name=")[2], json.loads(body))
            e.containers[c.name] = c
            e.specs.append(c.spec)
            return self.answer(201, {"Id": c.id, "Warnings": []})
        if step == "list":
            return self.answer(200, [
                {"Id": c.id, "Names": ["/" + c.name], "Labels": c.spec["Labels"]}
                for c in e.containers.values()])
        c = e.containers.get(found.group(1)) or next(
            (x for x in e.containers.values() if x.id == found.group(1)), None)
        if c is None:
            return self.answer(404, {"message": "No such container"})
        return getattr(self, "do_" + step)(c)

    def do_inspect(self, c):
        host = dict(c.spec["HostConfig"])
        host.update(self.engine.forget)
        self.answer(200, {"HostConfig": host, "Config": {"User": c.spec["User"]},
                          "State": {"OOMKilled": False}})

    def do_attach(self, c):
        self.put(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
        with c.lock:
            c.streams.append(self.request)
        if self.engine.mute:
            c.ended.wait(120)
            return
        while True:
            try:
                data = self.request.recv(65536)
            except OSError:
                break
            if not data:
                break
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(c.process.stdin.fileno(), view):]
            except (OSError, AttributeError):
                pass
        # StdinOnce.
        try:
            c.process.stdin.close()
        except (OSError, AttributeError):
            pass

    def do_wait(self, c):
        self.put(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\n")
        if c.ended.wait(120):
            data = json.dumps({"StatusCode": c.code}).encode()
            self.put(b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data))

    def do_start(self, c):
        c.start(self.engine)
        self.answer(204)

    def do_delete(self, c):
        c.kill()
        self.engine.containers.pop(c.name, None)
        self.answer(204)


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


class FakeEngine:
    def __init__(self, path, **options):
        self.path = path
        self.api = "1.41"
        self.min_api = "1.12"
        self.stall = self.drop = self.frames = None
        self.chunked = self.dribble = 0
        self.mute = False
        self.fail = {}
        self.forget = {}
        self.image_id = "sha256:" + "ab" * 32
        self.image_env = ["PATH=/usr/bin:/bin", "SECRET=from-the-image"]
        self.containers = {}
        self.requests = []
        self.specs = []
        self.__dict__.update(options)

    def __enter__(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.server = Server(self.path, Handler)
        self.server.engine = self
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05},
                         daemon=True).start()
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()
        for c in list(self.containers.values()):
            c.kill()
        if os.path.exists(self.path):
            os.unlink(self.path)
