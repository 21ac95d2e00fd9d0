#!/usr/bin/env python3
"""Clients that mean no good, and clients that are merely slow: each is bounded, and the
ones beside it are served."""
import random
import socket
import threading
import time

from harness import (KEY, Case, Client, Closed, main, request, until, ws_frame,
                     ws_headers, ws_read)

HEAD_MAX = 16384


def head_of(port, total, path="/healthz"):
    """A request head of exactly so many bytes."""
    start = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Fill: ".encode()
    return start + b"a" * (total - len(start) - 4) + b"\r\n\r\n"


class Heads(Case):
    def test_size(self):
        for total in (HEAD_MAX - 1, HEAD_MAX):
            self.assertEqual(self.raw(head_of(self.port, total)).status, 200, total)
        for total in (HEAD_MAX + 1, HEAD_MAX * 4, 1 << 20):
            with Client(self.port) as c:
                try:
                    c.send(head_of(self.port, total))
                except OSError:
                    pass  # answered and closed meanwhile
                a = c.answer()
                self.is_error(a, 431, "headers_too_large")
                self.assertTrue(a.closes())

    def test_count(self):
        for n, status in ((98, 200), (99, 200), (100, 431)):
            a = self.ask(headers=["X: y"] * n)
            self.assertEqual(a.status, status, n)

    def test_target_length(self):
        for n, status in ((8191, 404), (8192, 404), (8193, 414)):
            a = self.ask(path="/" + "a" * (n - 1))
            self.is_error(a, status)

    def test_byte_by_byte(self):
        with Client(self.port) as c:
            c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for b in request(self.port, "POST", "/api/v1/echo", body=b"hello"):
                c.send(bytes([b]))
            self.assertEqual(c.answer().json()["body"], "hello")

    def test_paths(self):
        for path in ("/..", "/../healthz", "/api/../healthz", "/%2e%2e/healthz", "/./healthz",
                     "//healthz", "/api//v1", "/healthz//", "/a%2fb", "/a%2Fb", "/a%5cb",
                     "/a\\b", "/%00", "/a%", "/a%4", "/a%zz", "/%ff", "/%c0%af", "/%ed%a0%80",
                     "/a%0d%0ab", "/a%7f", "/a#b", "healthz", "*", "http://127.0.0.1/healthz",
                     "/\x01", "/\xff", "/é"):
            a = self.raw(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n"
                         .encode("utf-8" if path == "/é" else "latin-1"))
            self.is_error(a, 400, "bad_request")
        self.is_error(self.ask(path="/%c3%a9"), 404)
        self.assertEqual(self.ask(path="/%68ealthz?x=%ff").status, 200)

    def test_malformed(self):
        host = f"Host: 127.0.0.1:{self.port}\r\n"
        for text, status in (
                ("GET /healthz HTTP/1.1\r\n" + host + " folded: x\r\n\r\n", 400),
                ("GET /healthz HTTP/1.1\r\n" + host + "X: a\r\n b\r\n\r\n", 400),
                ("GET /healthz HTTP/1.1\r\n" + host + "X : a\r\n\r\n", 400),
                ("GET /healthz HTTP/1.1\r\n" + host + "X\r\n\r\n", 400),
                ("GET /healthz HTTP/1.1\r\n" + host + ": a\r\n\r\n", 400),
                ("GET /healthz HTTP/1.1\r\n" + host + "X: a\x00b\r\n\r\n", 400),
                ("GET /healthz HTTP/1.1\r\n" + host + "X: a\nY: b\r\n\r\n", 400),
                ("GET /healthz HTTP/1.1\r\n" + host + "X: a\rb\r\n\r\n", 400),
                ("GET /healthz HTTP/1.1\r\n" + host + "X: \xff\r\n\r\n", 400),
                ("GET /healthz HTTP/1.1\r\n" + host + "X\xe9: a\r\n\r\n", 400),
                ("GET  /healthz HTTP/1.1\r\n" + host + "\r\n", 400),
                ("GET /healthz  HTTP/1.1\r\n" + host + "\r\n", 400),
                ("GET /healthz\r\n" + host + "\r\n", 400),
                ("GET\t/healthz\tHTTP/1.1\r\n" + host + "\r\n", 400),
                ("GET /healthz HTTP/1.1 \r\n" + host + "\r\n", 400),
                ("GET /healthz http/1.1\r\n" + host + "\r\n", 400),
                ("G(T /healthz HTTP/1.1\r\n" + host + "\r\n", 400),
                ("GET /healthz HTTP/2.0\r\n" + host + "\r\n", 505),
                ("GET /healthz HTTP/0.9\r\n" + host + "\r\n", 505),
                ("GET /healthz HTTP/1.1\r\n" + host + "Expect: cake\r\n\r\n", 417),
                ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
                ("\x16\x03\x01\x02\x00\x01\x00", 400),
                ("\x00\x00", 400),
                ("{\"a\":1}", 400)):
            with Client(self.port) as c:
                a = c.send(text.encode("latin-1")).answer()
                self.assertEqual(a.status, status, text)
                self.assertTrue(a.closes())
                self.is_error(a, status)
                self.assertTrue(c.closed())

    def test_empty_lines_before(self):
        self.assertEqual(self.raw(b"\r\n\r\n" + request(self.port)).status, 200)

    def test_random_garbage(self):
        dice = random.Random(7)
        for _ in range(300):
            data = bytes(dice.choice(b"GET /HTP1.\r\n\r\n:a%\x00\xff ") for _ in range(
                dice.randrange(1, 400)))
            with Client(self.port) as c:
                try:
                    c.send(data + b"\r\n\r\n")
                    c.sock.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                answer = c.rest()
                self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 "))
                self.assertNotIn(b"<", answer)
        self.assertEqual(self.ask().status, 200)


class Smuggling(Case):
    def test_forms(self):
        host = f"Host: 127.0.0.1:{self.port}\r\n"
        post = "POST /api/v1/echo HTTP/1.1\r\n" + host
        inner = f"GET /static HTTP/1.1\r\n{host}\r\n"
        for headers, status in (
                ("Transfer-Encoding: chunked\r\n", 411),
                ("Transfer-Encoding: xchunked\r\n", 411),
                ("Transfer-Encoding: identity\r\n", 411),
                ("transfer-encoding:\tchunked\r\n", 411),
                ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400),
                ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400),
                ("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n", 400),
                ("Content-Length: 5\r\nContent-Length: 6\r\n", 400),
                ("Content-Length: 5\r\nContent-Length: 5\r\n", 400),
                ("Content-Length: 5, 5\r\n", 400),
                ("Content-Length: +5\r\n", 400),
                ("Content-Length: -5\r\n", 400),
                ("Content-Length: 0x5\r\n", 400),
                ("Content-Length: 5 5\r\n", 400),
                ("Content-Length: \r\n", 400),
                ("Content-Length: 99999999999999999999\r\n", 400),
                ("", 411)):
            with Client(self.port) as c:
                a = c.send(post + headers + "\r\n" + inner).answer()
                self.is_error(a, status)
                # One answer and the end: what followed was not read as a request.
                self.assertTrue(c.closed(), headers)
        with Client(self.port) as c:
            a = c.send(f"POST /api/v1/echo HTTP/1.0\r\n{host}Transfer-Encoding: chunked\r\n"
                       "\r\n").answer()
            self.is_error(a, 400)

    def test_leading_zero_length(self):
        with Client(self.port) as c:
            c.send(request(self.port, "POST", "/api/v1/echo", ["Content-Length: 005"]))
            self.assertEqual(c.send("hello").answer().json()["body"], "hello")

    def test_pipelining_keeps_order(self):
        with Client(self.port) as c:
            c.send(request(self.port, path="/api/v1/echo?q=1") + request(self.port) +
                   request(self.port, "POST", "/api/v1/echo?q=2", body=b"abc") +
                   request(self.port, path="/nope") +
                   request(self.port, path="/api/v1/stream") +
                   request(self.port, path="/api/v1/echo?q=3", headers=["Connection: close"])
                   + request(self.port, path="/api/v1/echo?q=4"))
            self.assertEqual(c.answer().json()["q"], "1")
            self.assertEqual(c.answer().json(), {"status": "ok"})
            a = c.answer().json()
            self.assertEqual((a["q"], a["body"]), ("2", "abc"))
            self.assertEqual(c.answer().status, 404)
            self.assertEqual(c.answer().body, b"line\n" * 5)
            self.assertEqual(c.answer().json()["q"], "3")
            self.assertTrue(c.closed())

    def test_many_pipelined(self):
        with Client(self.port) as c:
            n = 2000
            sender = threading.Thread(target=c.send, args=(request(self.port) * n,))
            sender.start()
            for _ in range(n):
                self.assertEqual(c.answer().status, 200)
            sender.join()

    def test_pipelined_without_reading(self):
        before = self.server.rss_kb()
        with Client(self.port, timeout=1.0, rcvbuf=4096) as c:
            try:
                for _ in range(2000):
                    c.send(request(self.port) * 50)
            except (TimeoutError, OSError):
                pass
            self.assertEqual(self.ask().status, 200)
            self.assertLess(self.server.rss_kb() - before, 20000)

    def test_http10(self):
        with Client(self.port) as c:
            a = c.send(request(self.port, version="1.0")).answer()
            self.assertEqual(a.status, 200)
            self.assertTrue(c.closed())
        with Client(self.port) as c:
            a = c.send(request(self.port, path="/api/v1/stream", version="1.0",
                               headers=["Connection: keep-alive"])).answer()
            self.assertIsNone(a.get("transfer-encoding"))
            self.assertEqual(a.body, b"line\n" * 5)
        with Client(self.port) as c:
            for _ in range(2):
                a = c.send(request(self.port, version="1.0",
                                   headers=["Connection: Keep-Alive"])).answer()
                self.assertEqual(a.get("connection"), "keep-alive")


class Bodies(Case):
    settings = ("key=" + KEY,)

    def test_cap(self):
        for n, status in ((99, 200), (100, 200), (101, 413)):
            a = self.ask("POST", "/api/v1/small", body=b"x" * n, key=KEY)
            self.assertEqual(a.status, status)
        for n, status in (((1 << 20) - 1, 200), (1 << 20, 200), ((1 << 20) + 1, 413)):
            a = self.ask("POST", "/api/v1/echo", body=b"x" * n, key=KEY)
            self.assertEqual(a.status, status)

    def test_cap_holds_before_key_and_body(self):
        for n in (101, 1 << 40):
            with Client(self.port) as c:
                a = c.send(request(self.port, "POST", "/api/v1/small",
                                   [f"Content-Length: {n}"])).answer()
                self.is_error(a, 413, "body_too_large")
                self.assertTrue(c.closed())

    def test_body_is_not_read_without_key(self):
        with Client(self.port) as c:
            a = c.send(request(self.port, "POST", "/api/v1/echo",
                               ["Content-Length: 1000000"])).answer()
            self.is_error(a, 401)
            self.assertTrue(a.closes())

    def test_short_unwanted_body_is_passed_over(self):
        with Client(self.port) as c:
            c.send(request(self.port, "POST", "/api/v1/echo", body=b"GET / HTTP/1.1\r\n\r\n"))
            self.is_error(c.answer(), 401)
            c.send(request(self.port, "POST", "/healthz", body=b"x" * 1000))
            self.is_error(c.answer(), 405)
            c.send(request(self.port, "GET", "/healthz", body=b"x" * 1000))
            self.assertEqual(c.answer().status, 200)
            c.send(request(self.port, key=KEY, path="/api/v1/echo"))
            self.assertEqual(c.answer().status, 200)

    def test_expect_continue(self):
        head = ["Expect: 100-continue", "Content-Length: 5"]
        with Client(self.port) as c:
            c.send(request(self.port, "POST", "/api/v1/echo", head, key=KEY))
            self.assertEqual(c.answer().status, 100)
            self.assertEqual(c.send("hello").answer().json()["body"], "hello")
        with Client(self.port) as c:
            c.send(request(self.port, "POST", "/api/v1/echo", head))
            self.is_error(c.answer(), 401)
            self.assertTrue(c.closed())

    def test_bytes_are_kept(self):
        data = bytes(range(256)) * 4
        a = self.ask("POST", "/api/v1/echo", body=data, key=KEY)
        self.assertIn(b'"bytes":1024', a.body)

    def test_unfinished_bodies_leave_nothing(self):
        clients = []
        for _ in range(50):
            c = Client(self.port)
            c.send(request(self.port, "POST", "/api/v1/echo", ["Content-Length: 1000"],
                           key=KEY) + b"x" * 500)
            clients.append(c)
        self.assertEqual(self.ask(path="/api/v1/echo", key=KEY).status, 200)
        for c in clients:
            c.sock.close()


class Slow(Case):
    settings = ("key=" + KEY, "tick_ms=50", "head_ms=300", "body_ms=300", "idle_ms=800",
                "stall_ms=600", "linger_ms=500", "ping_ms=400")

    def test_slow_head(self):
        with Client(self.port) as c:
            start = time.monotonic()
            c.send("GET / HT")
            a = c.answer()
            self.is_error(a, 408, "timeout")
            self.assertLess(time.monotonic() - start, 4)
            self.assertTrue(c.closed())

    def test_dripping_head_is_no_way_round(self):
        with Client(self.port) as c:
            start = time.monotonic()
            c.send("GET /healthz HTTP/1.1\r\n")
            try:
                while time.monotonic() - start < 5:
                    c.send("X: y\r\n")
                    time.sleep(0.05)
            except OSError:
                pass
            self.assertLess(time.monotonic() - start, 4)

    def test_silent_connection(self):
        with Client(self.port) as c:
            self.assertTrue(c.closed())

    def test_stopped_body(self):
        with Client(self.port) as c:
            c.send(request(self.port, "POST", "/api/v1/echo", ["Content-Length: 10"],
                           key=KEY) + b"x")
            self.is_error(c.answer(), 408, "timeout")
            self.assertTrue(c.closed())

    def test_idle_keep_alive_ends(self):
        with Client(self.port) as c:
            self.assertEqual(c.send(request(self.port)).answer().status, 200)
            self.assertTrue(c.closed())

    def test_slow_reader_of_a_stream(self):
        with Client(self.port, rcvbuf=4096) as c:
            c.send(request(self.port, path="/api/v1/flood", key=KEY))
            with self.assertRaises((Closed, AssertionError)):
                until(lambda: self.server.fds() < 0, 0.3)  # let it pile up
                c.answer()
        self.assertLess(self.server.rss_kb(), 200000)

    def test_stalled_reader_of_an_answer(self):
        with Client(self.port, rcvbuf=4096) as c:
            c.send(request(self.port)).answer()
            before = self.server.fds()
            c.send(request(self.port, path="/api/v1/big", key=KEY))
            self.assertTrue(until(lambda: self.server.fds() < before))

    def test_slow_but_steady_reader_gets_all(self):
        with Client(self.port, rcvbuf=65536) as c:
            c.send(request(self.port, path="/api/v1/big", key=KEY))
            a = c.head()
            left = int(a.get("content-length"))
            while left > 0:
                left -= len(c.take(min(left, 262144)))
                time.sleep(0.05)

    def test_websocket_that_does_not_answer_pings(self):
        with Client(self.port) as c:
            c.send(request(self.port, path="/ws/echo", headers=ws_headers(), key=KEY))
            self.assertEqual(c.answer().status, 101)
            self.assertEqual(ws_read(c)[0], 9)
            self.assertTrue(c.closed())
        with Client(self.port) as c:
            c.send(request(self.port, path="/ws/echo", headers=ws_headers(), key=KEY))
            c.answer()
            for _ in range(3):
                self.assertEqual(ws_read(c)[0], 9)
                c.send(ws_frame(b"", op=10))


class Crowd(Case):
    settings = ("max_conns=100",)

    def test_idle_connections_give_way(self):
        clients = [Client(self.port) for _ in range(200)]
        for c in clients[:50]:
            try:
                c.send("GET")
            except OSError:
                pass
        for _ in range(5):
            self.assertEqual(self.ask().status, 200)
        self.assertLess(self.server.fds(), 160)
        for c in clients:
            c.sock.close()
        self.assertTrue(until(lambda: self.server.fds() < 20))


class Few(Case):
    settings = ("nofile=64", "max_conns=500", "tick_ms=200")

    def test_descriptors_run_out(self):
        clients = []
        for _ in range(120):
            try:
                clients.append(Client(self.port, timeout=1))
            except OSError:
                break
        gone = 0
        for c in clients[60:]:
            try:
                gone += c.closed()
            except OSError:
                pass
            if gone:
                break
        self.assertGreater(gone, 0)
        for c in clients:
            c.sock.close()
        self.assertTrue(until(lambda: self.still_serves()))

    def still_serves(self):
        try:
            return self.ask().status == 200
        except (OSError, Closed):
            return False

    def tearDown(self):
        status, out, err = self.server.finish()
        self.close_clients()
        self.assertEqual((status, out), (0, "LEFT 0"), err)
        self.assertIn("out of file descriptors", err)
        self.assertEqual(err.count("out of file descriptors"), 1)


class Busy(Case):
    settings = ("drain_ms=300",)

    def test_max_parallel(self):
        clients = []
        for n in range(4):
            c = Client(self.port)
            c.send(request(self.port, path="/api/v1/hold"))
            clients.append(c)
            self.assertTrue(until(
                lambda: self.ask(path="/api/v1/count").json()["held"] == n + 1))
        a = self.ask(path="/api/v1/hold")
        self.is_error(a, 503, "busy")
        self.assertTrue(a.get("retry-after"))
        self.assertEqual(self.ask("POST", "/api/v1/release", body=b"").json()["held"], 4)
        for c in clients:
            self.assertEqual(c.answer().json(), {"held": True})
        with Client(self.port) as c:
            c.send(request(self.port, path="/api/v1/hold"))
            self.assertTrue(until(
                lambda: self.ask(path="/api/v1/count").json()["held"] == 1))
            self.ask("POST", "/api/v1/release", body=b"")
            self.assertEqual(c.answer().status, 200)


class FullPool(Case):
    settings = ("threads=1", "queued=1")

    def test_full_pool_is_503(self):
        clients = [Client(self.port) for _ in range(100)]
        for c in clients:
            c.send(request(self.port, path="/api/v1/big"))
        answers = [c.answer() for c in clients]
        self.assertTrue(all(a.status in (200, 503) for a in answers))
        for a in answers:
            if a.status == 503:
                self.is_error(a, 503, "busy")


class Gone(Case):
    def hold(self):
        c = Client(self.port)
        c.send(request(self.port, path="/api/v1/hold"))
        self.assertTrue(until(lambda: self.count()["held"] == 1))
        return c

    def count(self):
        return self.ask(path="/api/v1/count").json()

    def test_disconnect_is_told_once(self):
        self.hold().sock.close()
        self.assertTrue(until(lambda: self.count() == {"held": 0, "gone": 1}))

    def test_half_close_counts_as_gone(self):
        c = self.hold()
        c.sock.shutdown(socket.SHUT_WR)
        self.assertTrue(until(lambda: self.count() == {"held": 0, "gone": 1}))

    def test_reset_is_told(self):
        c = self.hold()
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        c.sock.close()
        self.assertTrue(until(lambda: self.count() == {"held": 0, "gone": 1}))

    def test_answered_is_not_told(self):
        c = self.hold()
        self.ask("POST", "/api/v1/release", body=b"")
        self.assertEqual(c.answer().status, 200)
        c.sock.close()
        self.assertEqual(self.count(), {"held": 0, "gone": 0})

    def test_pipelined_behind_a_held_one(self):
        c = self.hold()
        c.send(request(self.port) * 3)
        self.ask("POST", "/api/v1/release", body=b"")
        self.assertEqual(c.answer().json(), {"held": True})
        for _ in range(3):
            self.assertEqual(c.answer().json(), {"status": "ok"})

    def test_flood_behind_a_held_one_is_bounded(self):
        before = self.server.rss_kb()
        c = self.hold()
        c.sock.settimeout(0.5)
        try:
            for _ in range(4000):
                c.send(request(self.port) * 50)
        except (TimeoutError, OSError):
            pass
        self.assertLess(self.server.rss_kb() - before, 20000)
        c.sock.close()

    def test_stop_with_open_requests(self):
        self.hold()  # tearDown drains: gone is told, nothing is left


class Handles(Case):
    def test_misuse(self):
        self.assertEqual(self.ask(path="/api/v1/misuse").body, b"0")

    def test_no_answer_is_500(self):
        self.is_error(self.ask(path="/api/v1/none"), 500, "internal")

    def test_short_answer_is_not_taken_for_whole(self):
        with self.assertRaises(Closed):
            self.ask(path="/api/v1/short")

    def test_many_at_once(self):
        errors = []

        def work():
            try:
                with Client(self.port) as c:
                    for i in range(100):
                        a = c.send(request(self.port, "POST", f"/api/v1/echo?q={i}",
                                           body=b"x" * (i * 37))).answer()
                        if a.json()["q"] != str(i) or a.json()["bytes"] != i * 37:
                            errors.append(a.body)
            except (OSError, Closed, ValueError) as e:
                errors.append(e)

        threads = [threading.Thread(target=work) for _ in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(errors, [])

    def test_disconnects_at_any_moment(self):
        dice = random.Random(3)
        for _ in range(200):
            c = Client(self.port)
            data = request(self.port, "POST", "/api/v1/echo", body=b"x" * 100) + \
                request(self.port, path="/api/v1/stream") + request(self.port,
                                                                    path="/api/v1/hold")
            c.send(data[:dice.randrange(1, len(data) + 1)])
            c.sock.close()
        self.assertTrue(until(
            lambda: self.ask(path="/api/v1/count").json()["held"] == 0))


class WebSocket(Case):
    settings = ("key=" + KEY,)

    def open(self, extra=(), key=KEY):
        c = Client(self.port)
        c.send(request(self.port, path="/ws/echo", headers=ws_headers(extra), key=key))
        return c, c.answer()

    def test_echo(self):
        c, a = self.open()
        self.assertEqual(a.status, 101)
        self.assertEqual(a.get("upgrade"), "websocket")
        # RFC 6455, 4.2.2, over the key base64("0123456789abcdef").
        self.assertEqual(len(a.get("sec-websocket-accept")), 28)
        for text in ("hello", "", "é" * 300, "x" * 1000):
            c.send(ws_frame(text))
            self.assertEqual(ws_read(c), (1, text.encode()))
        whole = ws_frame("split in bytes")
        for b in whole:
            c.send(bytes([b]))
        self.assertEqual(ws_read(c), (1, b"split in bytes"))
        c.send(ws_frame("é"[:1], fin=False) + ws_frame("ping", op=9) +
               ws_frame(b"\xc3", op=0, fin=False) + ws_frame(b"\xa9", op=0))
        self.assertEqual(ws_read(c), (10, b"ping"))
        self.assertEqual(ws_read(c), (1, "éé".encode()))
        for i in range(200):
            c.send(ws_frame(str(i)))
        for i in range(200):
            self.assertEqual(ws_read(c), (1, str(i).encode()))
        c.send(ws_frame(b"\x03\xe8", op=8))
        self.assertEqual(ws_read(c), (8, b"\x03\xe8"))
        self.assertTrue(c.closed())

    def test_server_closes(self):
        c, _ = self.open()
        c.send(ws_frame("bye"))
        self.assertEqual(ws_read(c), (8, b"\x03\xe8"))

    def test_bad_frames(self):
        for data, code in (
                (ws_frame("x", mask=None), 1002),
                (ws_frame("x", rsv=0x40), 1002),
                (ws_frame(b"\xff"), 1007),
                (ws_frame(b"\xc3", fin=False) + ws_frame(b"x", op=0), 1007),
                (ws_frame("x", op=2), 1003),
                (ws_frame("x", op=3), 1002),
                (ws_frame("x", op=0), 1002),
                (ws_frame("a", fin=False) + ws_frame("b"), 1002),
                (ws_frame("x", op=9, fin=False), 1002),
                (ws_frame(b"x" * 126, op=9), 1002),
                (ws_frame(b"x", op=8), 1002),
                (ws_frame(b"\x00\x01", op=8), 1002),
                (ws_frame("x" * 1001), 1009),
                (ws_frame("x" * 600, fin=False) + ws_frame("x" * 401, op=0), 1009),
                (b"\x81\xff" + b"\xff" * 8 + b"mask", 1009)):
            c, a = self.open()
            self.assertEqual(a.status, 101)
            c.send(data)
            op, payload = ws_read(c)
            self.assertEqual((op, int.from_bytes(payload[:2], "big")), (8, code), data[:20])
            self.assertTrue(c.closed())

    def test_handshake(self):
        a = self.ask(path="/ws/echo", key=KEY)
        self.is_error(a, 426, "upgrade_required")
        for headers in (ws_headers(version="8"), ws_headers(ws_key="short"),
                        ws_headers()[1:], [ws_headers()[0]] + ws_headers()[2:]):
            self.is_error(self.ask(path="/ws/echo", key=KEY, headers=headers), 426)
        self.is_error(self.ask(path="/ws/echo", headers=ws_headers()), 401)
        self.is_error(self.ask(path=f"/ws/echo?key={KEY}", headers=ws_headers()), 400)
        a = self.ask(path="/ws/echo", key=KEY, headers=ws_headers(["Origin: http://x"]))
        self.is_error(a, 403)

    def test_key_as_subprotocol(self):
        c, a = self.open(["Sec-WebSocket-Protocol: soulacy, bearer." + KEY], key=None)
        self.assertEqual(a.status, 101)
        self.assertEqual(a.get("sec-websocket-protocol"), "soulacy")
        c.send(ws_frame("x"))
        self.assertEqual(ws_read(c), (1, b"x"))
        _, a = self.open(["Sec-WebSocket-Protocol: soulacy, bearer.wrong"], key=None)
        self.is_error(a, 401)

    def test_gone(self):
        c, _ = self.open()
        c.sock.close()
        self.assertTrue(until(
            lambda: self.ask(path="/api/v1/count", key=KEY).json()["gone"] == 1))


if __name__ == "__main__":
    main()
