#!/usr/bin/env python3
"""The API of channel-http over a played gateway: what becomes of requests and of errors."""
import json

from harness import KEY, Case, Client, main, request, until

JSON = "Content-Type: application/json"


class Api(Case):
    settings = ("api=1", "key=" + KEY, "drain_ms=300")

    def call(self, method, path, body=None, headers=(JSON,), **more):
        data = None if body is None else (
            body if isinstance(body, bytes) else json.dumps(body).encode())
        return self.ask(method, "/api/v1" + path, headers if data is not None else (),
                        data, key=more.pop("key", KEY), **more)

    def test_operations(self):
        for method, path, op, args in (
                ("POST", "/chat", "chat", {"text": "hé", "n": 12345678901234567}),
                ("POST", "/chat/cancel", "chat.cancel", {"run_id": "r"}),
                ("POST", "/tools/run", "tools.run", {"agent_id": "a", "args": {"x": [1]}}),
                ("GET", "/agents", "agents", {}),
                ("GET", "/agents/a.b-c_d", "agents.get", {"id": "a.b-c_d"}),
                ("GET", "/agents/a/tools", "agents.tools", {"id": "a"}),
                ("GET", "/agents/tools", "agents.get", {"id": "tools"}),
                ("GET", "/agents/%22%7d%c3%a9", "agents.get", {"id": "\"}é"}),
                ("GET", "/sessions", "sessions", {}),
                ("GET", "/sessions?limit=5&agent_id=a%20b&before=0", "sessions",
                 {"agent_id": "a b", "before": 0, "limit": 5}),
                ("GET", "/sessions/s", "sessions.get", {"id": "s"}),
                ("GET", "/sessions/s?after=7", "sessions.get", {"id": "s", "after": 7}),
                ("DELETE", "/sessions/s", "sessions.delete", {"id": "s"}),
                ("GET", "/status", "status", {})):
            a = self.call(method, path, args if method == "POST" else None)
            self.assertEqual(a.status, 200, a.body)
            self.assertEqual(a.get("content-type"), "application/json")
            got = a.json()
            self.assertEqual((got["op"], got["args"]), (op, args))
            self.assertEqual((got["local"], got["events"], got["peer"]), (1, 0, "127.0.0.1"))
            self.assertEqual(got["request_id"], a.get("x-request-id"))

    def test_key_everywhere(self):
        for method, path in (("POST", "/chat"), ("POST", "/chat/cancel"),
                             ("POST", "/tools/run"), ("GET", "/agents"),
                             ("GET", "/agents/x"), ("GET", "/agents/x/tools"),
                             ("GET", "/sessions"), ("GET", "/sessions/x"),
                             ("DELETE", "/sessions/x"), ("GET", "/status")):
            self.is_error(self.call(method, path, b"{}" if method == "POST" else None,
                                    key=None), 401)

    def test_body_rules(self):
        for headers, status in (
                ([JSON], 200), (["Content-Type: Application/JSON; charset=utf-8"], 200),
                (["Content-Type: text/plain"], 415), ([], 415),
                (["Content-Type: application/jsonp"], 415),
                (["Content-Type: application/x-www-form-urlencoded"], 415)):
            a = self.call("POST", "/chat", b"{}", headers)
            self.assertEqual(a.status, status, headers)
        for body in (b"", b"[]", b"1", b"x", b" ", b"null", b"\"{}\"", b"\x00{}"):
            self.is_error(self.call("POST", "/chat", body), 400, "invalid")
        self.assertEqual(self.call("POST", "/chat", b" \r\n\t{}").status, 200)

    def test_query_rules(self):
        for path, field in (("/sessions?limt=5", "limt"), ("/agents?x", "x"),
                            ("/sessions?limit=five", "limit"), ("/sessions?limit=-1", "limit"),
                            ("/sessions?limit=", "limit"), ("/sessions?limit=1.5", "limit"),
                            ("/sessions?limit=9999999999999999999", "limit"),
                            ("/sessions/s?after=01", "after"), ("/status?a=b", "a")):
            a = self.call("GET", path)
            self.is_error(a, 400, "invalid")
            self.assertEqual(a.json()["error"]["field"], field)
        self.is_error(self.call("POST", "/chat?x=1", {}), 400)

    def test_paths(self):
        for path in ("/agents/", "/agents/a/", "/agents/a/tools/", "/agents/a/b",
                     "/agents/a/b/tools", "/sessions/", "/sessions/a/b", "/chat/", "/tools"):
            self.is_error(self.call("GET", path), 404, "not_found")
        a = self.call("GET", "/chat")
        self.is_error(a, 405)
        self.assertEqual(a.get("allow"), "POST")
        a = self.call("POST", "/sessions/x", {})
        self.is_error(a, 405)
        self.assertEqual(a.get("allow"), "GET, HEAD, DELETE")

    def test_errors(self):
        a = self.call("POST", "/chat", {"x": "bad"})
        self.is_error(a, 409, "invalid")
        self.assertEqual(a.json()["error"]["field"], "a.b")
        self.assertEqual(a.json()["error"]["message"], 'has "quotes" and {')
        self.is_error(self.call("POST", "/chat", {"x": "odd"}), 500, "internal")
        a = self.call("POST", "/chat", {"x": "busy"})
        self.is_error(a, 503, "busy")
        self.assertEqual(a.get("retry-after"), "1")
        self.is_error(self.call("POST", "/chat", {"x": "mute"}), 500, "internal")

    def test_answer_from_another_thread(self):
        with Client(self.port) as c:
            for _ in range(50):
                c.send(request(self.port, "POST", "/api/v1/chat", [JSON],
                               b'{"x":"later"}', key=KEY))
                self.assertEqual(c.answer().json(), {"later": True})

    def test_large_answer(self):
        text = "x" * 900000
        a = self.call("POST", "/tools/run", {"text": text})
        self.assertEqual(a.json()["args"]["text"], text)

    def hold(self):
        return Client(self.port).send(request(
            self.port, "POST", "/api/v1/chat", [JSON], b'{"x":"hold"}', key=KEY))

    def cancelled(self):
        return self.call("GET", "/status").json()["cancelled"]

    def test_gone_cancels(self):
        clients = [self.hold() for _ in range(20)]
        self.assertEqual(self.cancelled(), 0)
        for c in clients:
            c.sock.close()
        self.assertTrue(until(lambda: self.cancelled() == 20))

    def test_gone_at_once(self):
        for _ in range(30):
            self.hold().sock.close()
        self.cancelled()

    def test_stop_cancels(self):
        c = self.hold()
        self.cancelled()
        status, out, err = self.server.finish()
        self.assertEqual((status, out), (0, "LEFT 0"), err)
        del c

    def tearDown(self):
        if self.server.process.returncode is None:
            super().tearDown()
        self.close_clients()


class KeylessApi(Case):
    settings = ("api=1",)

    def test_local(self):
        self.assertEqual(self.ask(path="/api/v1/agents").json()["local"], 1)
        a = self.ask(path="/api/v1/agents", headers=["X-Forwarded-For: 127.0.0.1"])
        self.assertEqual(a.json()["local"], 0)

    def test_other_page_cannot_post(self):
        a = self.ask("POST", "/api/v1/chat", ["Origin: http://evil.example",
                                              "Content-Type: text/plain"], b"{}")
        self.is_error(a, 403)


if __name__ == "__main__":
    main()
