"""What the tests of the listener share: the server under test, and a client that sends
exactly the bytes it is told to."""
import base64
import json
import os
import socket
import struct
import subprocess
import sys
import time
import unittest

KEY = "sy_0123456789abcdef0123456789abcdef"
WAIT = 10.0  # seconds; no test is meant to wait so long


class Server:
    """The program of httpd.c (or the one named) with these settings."""

    def __init__(self, *settings, program="httpd", expect_failure=False):
        path = os.environ.get("SOULACY_" + program.upper()) or os.path.join(
            os.environ["SOULACY_BUILD_DIR"], "tests", program)
        self.process = subprocess.Popen([path] + list(settings), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        line = self.process.stdout.readline()
        if not line.startswith("PORT "):
            self.error = self.process.stderr.read()
            self.process.wait(WAIT)
            self.close_pipes()
            if not expect_failure:
                raise AssertionError("server did not start: " + self.error)
            self.port = 0
        else:
            self.port = int(line.split()[1])

    def close_pipes(self):
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if not pipe.closed:
                pipe.close()

    def finish(self):
        """Stop it; its exit status, last line and what it wrote to stderr."""
        if self.port == 0:
            return self.process.returncode, "", self.error
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out.strip(), err

    def rss_kb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(l.split()[1]) for l in f if l.startswith("VmRSS"))

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def get(self, name, default=None):
        found = [v for n, v in self.headers if n.lower() == name.lower()]
        return found[0] if found else default

    def json(self):
        return json.loads(self.body)

    def code(self):
        return self.json()["error"]["code"]

    def closes(self):
        return "close" in self.get("connection", "").lower()


class Closed(Exception):
    pass


class Client:
    open = []  # closed when the test is over

    def __init__(self, port, host="127.0.0.1", timeout=WAIT, rcvbuf=0, source=None):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        if source:
            self.sock.bind((source, 0))
        self.sock.connect((host, port))
        self.port = port
        self.pending = b""
        Client.open.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data if isinstance(data, bytes) else data.encode())
        return self

    def more(self):
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed()
        self.pending += data

    def take(self, n):
        while len(self.pending) < n:
            self.more()
        data, self.pending = self.pending[:n], self.pending[n:]
        return data

    def take_line(self):
        while b"\r\n" not in self.pending:
            self.more()
        line, self.pending = self.pending.split(b"\r\n", 1)
        return line.decode()

    def head(self):
        status = self.take_line()
        if not status.startswith("HTTP/1.1 "):
            raise AssertionError("no status line: " + status)
        headers = []
        for line in iter(self.take_line, ""):
            name, value = line.split(": ", 1)
            headers.append((name, value))
        return Answer(int(status.split()[1]), headers, b"")

    def answer(self, head_only=False):
        a = self.head()
        if a.status == 100:
            return a
        if head_only or a.status in (204, 304, 101):
            return a
        if a.get("transfer-encoding") == "chunked":
            while True:
                size = int(self.take_line(), 16)
                a.body += self.take(size)
                self.take_line()
                if size == 0:
                    return a
        if a.get("content-length") is None:
            a.body = self.rest()
            return a
        a.body = self.take(int(a.get("content-length")))
        return a

    def rest(self):
        """Everything until the other side closes."""
        try:
            while True:
                self.more()
        except Closed:
            data, self.pending = self.pending, b""
            return data

    def closed(self):
        """True once the server closed and sent nothing more."""
        return self.rest() == b""


def request(port, method="GET", path="/healthz", headers=(), body=None, host=None,
            key=None, version="1.1"):
    lines = [f"{method} {path} HTTP/{version}"]
    names = [h.split(":")[0].lower() for h in headers]
    if "host" not in names:
        lines.append(f"Host: {host or '127.0.0.1:%d' % port}")
    lines += list(headers)
    if key:
        lines.append("Authorization: Bearer " + key)
    if body is not None and "content-length" not in names:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


def ask(port, method="GET", path="/healthz", headers=(), body=None, **more):
    """One request on a connection of its own."""
    client = {k: more.pop(k) for k in ("source",) if k in more}
    address = more.pop("address", "127.0.0.1")
    with Client(port, host=address, **client) as c:
        c.send(request(port, method, path, headers, body, **more))
        return c.answer(head_only=method == "HEAD")


# ---- WebSocket ----

def ws_frame(payload, op=1, fin=True, mask=b"\x01\x02\x03\x04", rsv=0):
    data = payload if isinstance(payload, bytes) else payload.encode()
    first = (0x80 if fin else 0) | rsv | op
    bit = 0x80 if mask else 0
    if len(data) < 126:
        head = struct.pack("!BB", first, bit | len(data))
    elif len(data) < 65536:
        head = struct.pack("!BBH", first, bit | 126, len(data))
    else:
        head = struct.pack("!BBQ", first, bit | 127, len(data))
    if mask:
        data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
    return head + (mask or b"") + data


def ws_read(client):
    first, second = client.take(2)
    size = second & 127
    if size == 126:
        size = struct.unpack("!H", client.take(2))[0]
    elif size == 127:
        size = struct.unpack("!Q", client.take(8))[0]
    return first & 15, client.take(size)


def ws_headers(extra=(), version="13", ws_key=None):
    return ["Upgrade: websocket", "Connection: keep-alive, Upgrade",
            "Sec-WebSocket-Version: " + version,
            "Sec-WebSocket-Key: " + (ws_key or base64.b64encode(b"0123456789abcdef").decode())
            ] + list(extra)


def until(condition, timeout=WAIT):
    """Wait for what another process does; there is no event to wait on."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.005)
    return False


class Case(unittest.TestCase):
    settings = ()
    program = "httpd"

    def setUp(self):
        self.server = Server(*self.settings, program=self.program)
        self.port = self.server.port

    def tearDown(self):
        status, out, err = self.server.finish()
        self.close_clients()
        self.assertEqual(status, 0, err)
        self.assertEqual(out, "LEFT 0", err)
        self.assertNotIn("ERROR: ", err)
        self.assertNotIn("WARNING: ThreadSanitizer", err)

    @staticmethod
    def close_clients():
        while Client.open:
            Client.open.pop().sock.close()

    def ask(self, *args, **kwargs):
        return ask(self.port, *args, **kwargs)

    def is_error(self, answer, status, code=None):
        self.assertEqual(answer.status, status, answer.body)
        self.assertEqual(answer.get("content-type"), "application/json")
        error = answer.json()["error"]
        self.assertEqual(error["request_id"], answer.get("x-request-id"))
        self.assertTrue(error["message"])
        self.assertNotIn(b"<html", answer.body.lower())
        if code:
            self.assertEqual(error["code"], code)

    def raw(self, data):
        with Client(self.port) as c:
            return c.send(data).answer()


def main():
    unittest.main(verbosity=1, argv=[sys.argv[0]] + sys.argv[1:])
