#!/usr/bin/env python3
"""Every check of the listener, both ways: who may ask, by which name, for what."""
import ssl
import subprocess
import tempfile
import unittest

from harness import KEY, Case, Client, Server, ask, main, request, ws_headers


class Keyed(Case):
    settings = ("key=" + KEY,)

    def test_key(self):
        a = self.ask(path="/api/v1/echo")
        self.is_error(a, 401, "unauthorized")
        self.assertEqual(a.get("www-authenticate"), "Bearer")
        for wrong in (KEY + "x", KEY[:-1], "", KEY.upper()):
            self.is_error(self.ask(path="/api/v1/echo", key=wrong or " "), 401)
        a = self.ask(path="/api/v1/echo", key=KEY)
        self.assertEqual(a.status, 200)
        self.assertEqual((a.json()["auth"], a.json()["local"]), (1, 1))
        self.assertEqual(self.ask(path="/api/v1/echo",
                                  headers=["authorization: bEaReR  " + KEY]).status, 200)
        for scheme in ("Basic " + KEY, KEY, "Bearer" + KEY, "Bearer"):
            self.is_error(self.ask(path="/api/v1/echo",
                                   headers=["Authorization: " + scheme]), 401)

    def test_key_in_query_is_refused(self):
        for name in ("key", "token", "api_key", "API_KEY", "access_token", "%6bey"):
            a = self.ask(path=f"/api/v1/echo?{name}={KEY}")
            self.is_error(a, 400, "key_in_query")
            self.assertNotIn(KEY.encode(), a.body)
        a = self.ask(path="/api/v1/echo?keys=1&q=2", key=KEY)
        self.assertEqual(a.json()["q"], "2")

    def test_two_authorizations(self):
        a = self.ask(path="/api/v1/echo", key=KEY, headers=["Authorization: Bearer x"])
        self.is_error(a, 400)

    def test_public_paths(self):
        self.assertEqual(self.ask().json(), {"status": "ok"})
        self.assertEqual(self.ask(path="/readyz").json(), {"ready": True})
        self.assertEqual(self.ask(path="/readyz", key="wrong").json(), {"ready": True})
        self.assertEqual(self.ask(path="/readyz", key=KEY).json(),
                         {"ready": True, "parts": []})
        self.is_error(self.ask(path="/metrics"), 401)
        a = self.ask(path="/metrics", key=KEY)
        self.assertIn(b"soulacy_http_requests_total", a.body)
        self.assertTrue(a.get("content-type").startswith("text/plain"))
        a = self.ask(path="/static")
        self.assertEqual((a.json()["auth"], a.json()["local"]), (0, 0))
        a = self.ask(path="/static", key=KEY)
        self.assertEqual((a.json()["auth"], a.json()["local"]), (1, 1))

    def test_unknown_paths_are_json(self):
        for path in ("/api/v1/nope", "/v1/nope", "/", "/api", "/index.html",
                     "/api/v1/echo/", "/healthz/"):
            self.is_error(self.ask(path=path), 404, "not_found")

    def test_methods(self):
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get", "BREW"):
            a = self.ask(method, "/api/v1/echo", body=b"", key=KEY)
            self.is_error(a, 405, "method_not_allowed")
            self.assertEqual(a.get("allow"), "GET, HEAD, POST")
            self.is_error(self.ask(method, "/healthz", body=b""), 405)
        self.is_error(self.ask("POST", "/healthz", body=b"x"), 405)
        self.is_error(self.ask("BREW", "/nope"), 404)

    def test_head(self):
        for path in ("/healthz", "/readyz", "/api/v1/echo", "/api/v1/stream"):
            with Client(self.port) as c:
                c.send(request(self.port, "HEAD", path, key=KEY))
                a = c.answer(head_only=True)
                self.assertEqual(a.status, 200)
                # The next answer starts right behind the head.
                c.send(request(self.port))
                self.assertEqual(c.answer().json(), {"status": "ok"})

    def test_security_headers(self):
        ids = set()
        for path in ("/healthz", "/api/v1/echo", "/nope", "/api/v1/stream"):
            a = self.ask(path=path, key=KEY, headers=["X-Request-Id: mine"])
            self.assertEqual(a.get("x-content-type-options"), "nosniff")
            self.assertEqual(a.get("x-frame-options"), "DENY")
            self.assertEqual(a.get("cache-control"), "no-store")
            self.assertIn("default-src 'none'", a.get("content-security-policy"))
            self.assertIsNone(a.get("server"))
            self.assertIsNone(a.get("access-control-allow-origin"))
            self.assertRegex(a.get("x-request-id"), "^[0-9a-f]{24}$")
            ids.add(a.get("x-request-id"))
        self.assertEqual(len(ids), 4)

    def test_prefix_route(self):
        a = self.ask(path="/api/v1/tree/a/b%20c", key=KEY)
        self.assertEqual(a.json()["path"], "/api/v1/tree/a/b c")
        self.is_error(self.ask(path="/api/v1/tree", key=KEY), 404)

    def test_headers_and_query_reach_the_plugin(self):
        a = self.ask(path="/api/v1/echo?a=1&q=x%2By+z&b", key=KEY, headers=["x-TEST:  v "])
        self.assertEqual((a.json()["q"], a.json()["x"]), ("x+y z", "v"))
        a = self.ask(path="/api/v1/echo?q=1&q=2", key=KEY)
        self.assertEqual(a.json()["q"], "")  # given twice: absent
        for query in ("q=%", "q=%4", "q=%zz", "q=%00", "q=%ff"):
            self.is_error(self.ask(path="/api/v1/echo?" + query, key=KEY), 400)
        self.assertEqual(self.ask(path="/api/v1/echo?" + "&".join("a" * 64), key=KEY).status,
                         200)
        self.is_error(self.ask(path="/api/v1/echo?" + "&".join("a" * 65), key=KEY), 400)


class WrongKeys(Case):
    settings = ("key=" + KEY,)

    def test_limiter_of_wrong_keys(self):
        for _ in range(10):
            self.is_error(self.ask(path="/api/v1/echo", key="guess"), 401)
        a = self.ask(path="/api/v1/echo", key="guess")
        self.is_error(a, 429, "rate_limited")
        self.assertGreaterEqual(int(a.get("retry-after")), 1)
        # While it lasts the right key tells nothing either, nor does /readyz.
        self.is_error(self.ask(path="/api/v1/echo", key=KEY), 429)
        self.assertEqual(self.ask(path="/readyz", key=KEY).json(), {"ready": True})
        # Another address is not touched, nor is who shows no key.
        self.assertEqual(self.ask(path="/api/v1/echo", key=KEY, source="127.0.0.2").status,
                         200)
        self.is_error(self.ask(path="/api/v1/echo"), 401)

    def test_readyz_guesses_count(self):
        for _ in range(10):
            self.ask(path="/readyz", key="guess")
        self.is_error(self.ask(path="/api/v1/echo", key=KEY), 429)


class Keyless(Case):
    def test_local_without_key(self):
        a = self.ask(path="/api/v1/echo")
        self.assertEqual((a.json()["auth"], a.json()["local"]), (0, 1))
        for header in ("X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: https",
                       "Forwarded: for=127.0.0.1", "Via: 1.1 x", "X-Real-IP: 127.0.0.1"):
            a = self.ask(path="/api/v1/echo", headers=[header])
            self.assertEqual((a.status, a.json()["local"]), (200, 0), header)
            self.assertEqual(a.json()["peer"], "127.0.0.1")

    def test_cross_site_is_refused(self):
        for origin in ("http://evil.example", "null", "http://127.0.0.1", "",
                       f"https://127.0.0.1:{self.port}", f"http://localhost:{self.port}",
                       f"http://127.0.0.1:{self.port}.evil.example",
                       f"http://127.0.0.1:{self.port + 1}", "file://",
                       f"http://127.0.0.1:{self.port}/"):
            for method, path in (("GET", "/healthz"), ("POST", "/api/v1/echo"),
                                 ("GET", "/api/v1/echo"), ("GET", "/ws/echo"),
                                 ("OPTIONS", "/api/v1/echo")):
                headers = ["Origin: " + origin]
                if path == "/ws/echo":
                    headers += ws_headers()
                a = self.ask(method, path, headers=headers, body=b"")
                self.is_error(a, 403, "origin_not_allowed")
                self.assertIsNone(a.get("access-control-allow-origin"))
        a = self.ask(path="/api/v1/echo", headers=[f"Origin: http://127.0.0.1:{self.port}"])
        self.assertEqual(a.status, 200)
        self.assertIsNone(a.get("access-control-allow-origin"))
        a = self.ask(path="/api/v1/echo", headers=[f"Origin: http://LOCALHOST:{self.port}"],
                     host=f"localhost:{self.port}")
        self.assertEqual(a.status, 200)

    def test_dns_rebinding_is_refused(self):
        for host in ("evil.example", f"evil.example:{self.port}", "127.0.0.1",
                     f"127.0.0.1:{self.port + 1}", f"127.0.0.1.evil:{self.port}",
                     f"localhost.:{self.port}", "localhost", f"127.0.0.1:{self.port}:1",
                     f"127.0.0.1:{self.port} ", f"[::1:{self.port}", "[::1]", ":",
                     f":{self.port}", f"127.1:{self.port}", f"a,127.0.0.1:{self.port}",
                     f"127.0.0.1:0{self.port}x", f"x@127.0.0.1:{self.port}"):
            a = self.ask(path="/api/v1/echo", headers=["Host: " + host])
            if host.strip() == f"127.0.0.1:{self.port}":
                self.assertEqual(a.status, 200)
                continue
            self.is_error(a, 403, "host_not_allowed")
            self.is_error(self.ask(headers=["Host: " + host]), 403)
        for name in ("127.0.0.1", "localhost", "LocalHost", "[::1]"):
            self.assertEqual(self.ask(host=f"{name}:{self.port}").status, 200, name)

    def test_host_once(self):
        name = f"127.0.0.1:{self.port}"
        self.is_error(self.ask(headers=[f"Host: {name}", f"Host: {name}"]), 400)
        self.is_error(self.ask(headers=[f"Host: {name}", "Host: evil"]), 400)
        self.is_error(self.ask(headers=["Host:"]), 400)
        self.is_error(self.raw(b"GET /healthz HTTP/1.1\r\n\r\n"), 400)
        self.is_error(self.raw(b"GET /healthz HTTP/1.0\r\n\r\n"), 400)

    def test_metrics_need_no_key_when_there_is_none(self):
        self.assertEqual(self.ask(path="/metrics").status, 200)


class NotReady(Case):
    settings = ("ready=0", "key=" + KEY, "open_metrics=1")

    def test_not_ready(self):
        a = self.ask(path="/readyz")
        self.assertEqual((a.status, a.json()["ready"]), (503, False))
        self.assertIn("parts", a.json())  # open_metrics
        self.assertEqual(self.ask(path="/metrics").status, 200)
        self.assertEqual(self.ask(path="/metrics", key="wrong").status, 200)


class Listed(Case):
    settings = ("key=" + KEY, "allow_host=gw.example", "allow_host=other.example:8443",
                "allow_origin=https://app.example")

    def test_hosts(self):
        for host in ("gw.example", f"gw.example:{self.port}", "GW.Example",
                     "other.example:8443", "gw.example:443"):
            self.assertEqual(self.ask(host=host).status, 200, host)
        for host in ("xgw.example", "gw.example.evil", "other.example", "gw.example:8443",
                     f"other.example:{self.port}"):
            self.is_error(self.ask(host=host), 403, "host_not_allowed")

    def test_cors(self):
        mine = "Origin: https://app.example"
        a = self.ask(path="/api/v1/echo", headers=[mine], key=KEY)
        self.assertEqual(a.get("access-control-allow-origin"), "https://app.example")
        self.assertEqual(a.get("vary"), "Origin")
        self.assertIsNone(a.get("access-control-allow-credentials"))
        a = self.ask(path="/api/v1/echo", headers=[mine])
        self.is_error(a, 401)
        self.assertEqual(a.get("access-control-allow-origin"), "https://app.example")
        a = self.ask("OPTIONS", "/api/v1/echo",
                     headers=[mine, "Access-Control-Request-Method: POST"])
        self.assertEqual(a.status, 204)
        self.assertIn("Authorization", a.get("access-control-allow-headers"))
        self.is_error(self.ask("OPTIONS", "/api/v1/echo", headers=[mine]), 405)
        for other in ("https://app.example.evil", "http://app.example",
                      "https://app.example:444", "https://xapp.example"):
            a = self.ask("OPTIONS", "/api/v1/echo", headers=[
                "Origin: " + other, "Access-Control-Request-Method: POST"])
            self.is_error(a, 403)


class ListedKeyless(Case):
    settings = ("allow_host=gw.example",)

    def test_counts_as_open(self):
        self.assertEqual(self.ask(path="/api/v1/echo").json()["local"], 0)


class Wildcard(Case):
    settings = ("host=",)

    def test_wildcard_is_open(self):
        a = self.ask(path="/api/v1/echo")
        self.assertEqual((a.status, a.json()["local"]), (200, 0))
        a = ask(self.port, path="/api/v1/echo", address="127.0.0.9",
                host=f"127.0.0.9:{self.port}")
        self.assertEqual(a.status, 200)  # the address the connection came in on
        self.is_error(ask(self.port, address="127.0.0.9", host=f"127.0.0.8:{self.port}"),
                      403)
        self.assertEqual(self.ask(host=f"localhost:{self.port}").status, 200)


class Proxied(Case):
    settings = ("key=" + KEY, "proxy=127.0.0.0/30", "allow_host=gw.example", "proxy=::1")

    def peer(self, *values, source="127.0.0.1"):
        headers = ["X-Forwarded-For: " + v for v in values]
        return self.ask(path="/api/v1/echo", headers=headers, key=KEY,
                        source=source).json()["peer"]

    def test_right_most_untrusted_hop(self):
        self.assertEqual(self.peer("192.0.2.1"), "192.0.2.1")
        self.assertEqual(self.peer("6.6.6.6, 192.0.2.1"), "192.0.2.1")
        self.assertEqual(self.peer("6.6.6.6, 192.0.2.1, 127.0.0.2"), "192.0.2.1")
        self.assertEqual(self.peer("6.6.6.6", "192.0.2.1"), "192.0.2.1")
        self.assertEqual(self.peer("127.0.0.2"), "127.0.0.2")
        self.assertEqual(self.peer("192.0.2.1, junk"), "127.0.0.1")
        self.assertEqual(self.peer("192.0.2.1,"), "127.0.0.1")
        self.assertEqual(self.peer("192.0.2.1, unknown, 127.0.0.3"), "127.0.0.3")
        self.assertEqual(self.peer("[2001:db8::1]:99"), "2001:db8::1")
        self.assertEqual(self.peer("2001:db8::1"), "2001:db8::1")
        self.assertEqual(self.peer("::ffff:192.0.2.7"), "192.0.2.7")
        self.assertEqual(self.peer("192.0.2.1:1234"), "192.0.2.1")
        self.assertEqual(self.peer(), "127.0.0.1")

    def test_only_from_a_trusted_peer(self):
        self.assertEqual(self.peer("192.0.2.1", source="127.0.0.4"), "127.0.0.4")

    def test_origin_behind_tls_proxy(self):
        headers = ["Origin: https://gw.example"]
        self.assertEqual(self.ask(headers=headers, host="gw.example").status, 200)
        self.is_error(self.ask(headers=headers, host="gw.example", source="127.0.0.4"), 403)

    def test_guesses_count_for_the_client(self):
        for _ in range(11):
            a = self.ask(path="/api/v1/echo", key="guess",
                         headers=["X-Forwarded-For: 192.0.2.1"])
        self.is_error(a, 429)
        a = self.ask(path="/api/v1/echo", key=KEY, headers=["X-Forwarded-For: 192.0.2.2"])
        self.assertEqual(a.status, 200)


class Rate(Case):
    settings = ("key=" + KEY, "rate=5")

    def test_rate(self):
        for _ in range(5):
            self.assertEqual(self.ask(path="/api/v1/echo", key=KEY).status, 200)
        a = self.ask(path="/api/v1/echo", key=KEY)
        self.is_error(a, 429, "rate_limited")
        self.assertTrue(1 <= int(a.get("retry-after")) <= 13)
        self.assertFalse(a.closes())
        for path in ("/healthz", "/readyz"):
            self.assertEqual(self.ask(path=path).status, 200)
        self.is_error(self.ask(path="/metrics"), 429)
        self.is_error(self.raw(b"GET\r\n\r\n"), 429)
        self.assertEqual(self.ask(path="/api/v1/echo", key=KEY, source="127.0.0.2").status,
                         200)

    def test_verified_webhooks_are_exempt(self):
        hook = "/channels/whatsapp/webhook?status="
        for _ in range(20):
            self.assertEqual(self.ask(path=hook + "200").status, 200)
        for _ in range(5):
            self.assertEqual(self.ask(path=hook + "403").status, 403)
        self.is_error(self.ask(path=hook + "200"), 429)


class Tls(unittest.TestCase):
    def test_tls(self):
        with tempfile.TemporaryDirectory() as d:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                            "-keyout", d + "/k", "-out", d + "/c", "-days", "2", "-subj",
                            "/CN=localhost"], check=True, capture_output=True)
            server = Server("cert=" + d + "/c", "certkey=" + d + "/k", "key=" + KEY)
            self.check(server, d)
            status, out, err = server.finish()
            self.assertEqual((status, out), (0, "LEFT 0"), err)

    def talk(self, server, context, data):
        c = Client(server.port)
        c.sock = context.wrap_socket(c.sock, server_hostname="localhost")
        c.send(data)
        return c, c.answer()

    def check(self, server, d):
        context = ssl.create_default_context(cafile=d + "/c")
        c, a = self.talk(server, context, request(
            server.port, path="/api/v1/big", key=KEY, host=f"localhost:{server.port}",
            headers=[f"Origin: https://localhost:{server.port}"]))
        self.assertEqual((a.status, len(a.body)), (200, 4 << 20))
        c.send(request(server.port, "POST", "/api/v1/echo", body=b"x" * 300000, key=KEY))
        self.assertEqual(c.answer().json()["bytes"], 300000)
        c.sock.close()
        c, a = self.talk(server, context, request(server.port, headers=[
            f"Origin: http://127.0.0.1:{server.port}"]))
        self.assertEqual(a.status, 403)
        c.sock.close()
        # Plain text to a TLS port ends the connection and nothing else.
        with Client(server.port) as plain:
            plain.send(request(server.port))
            plain.rest()
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.options |= ssl.OP_NO_TLSv1_2 | ssl.OP_NO_TLSv1_3
        with self.assertRaises((ssl.SSLError, OSError)):
            self.talk(server, old, request(server.port))
        c, a = self.talk(server, context, request(server.port))
        self.assertEqual(a.json(), {"status": "ok"})
        c.sock.close()

    def test_bad_settings(self):
        for settings, text in (
                (("cert=/nonexistent", "certkey=/nonexistent"), "tls_cert"),
                (("cert=/nonexistent",), "tls_key"),
                (("proxy=300.1.1.1",), "trusted_proxies"),
                (("proxy=10.0.0.0/33",), "trusted_proxies"),
                (("host=192.0.2.1",), "192.0.2.1"),
                (("host=no.such.host.invalid",), "no.such.host.invalid")):
            server = Server(*settings, expect_failure=True)
            self.assertEqual(server.process.returncode, 1, settings)
            self.assertIn(text, server.error)

    def test_port_in_use(self):
        first = Server()
        second = Server(f"port={first.port}", expect_failure=True)
        self.assertIn(str(first.port), second.error)
        self.assertIn("in use", second.error)
        self.assertEqual(first.finish()[0], 0)


if __name__ == "__main__":
    main()
