/* Requests against a server of one answer on loopback: what is sent, and what every kind
 * of answer and of silence is told as. */
#include "support/test.h"

#include "base/io.h"
#include "net/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

struct peer {
    int listener;
    char url[64];
    const char *answer; /* NULL: closes without one */
    bool silent;        /* never answers, until stop fires */
    struct event stop;
    char seen[8192];
    pthread_t thread;
};

static void *serve(void *arg)
{
    struct peer *p = arg;
    int fd = accept(p->listener, NULL, NULL);
    size_t n = 0;
    ssize_t got = 1;

    while (fd >= 0 && got > 0 && n < sizeof(p->seen) - 1 &&
           strstr(p->seen, "\r\n\r\n") == NULL) {
        got = io_read(fd, p->seen + n, sizeof(p->seen) - 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    if (p->silent) {
        (void)!io_wait(p->stop.fd, POLLIN, -1, INT64_MAX);
    } else if (p->answer != NULL) {
        (void)!write(fd, p->answer, strlen(p->answer));
    }
    io_close(&fd);
    return NULL;
}

static void open_peer(struct peer *p, const char *answer)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    struct error err = {0};

    p->answer = answer;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (const struct sockaddr *)&a, len), 0);
    assert_int_equal(listen(p->listener, 4), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&a, &len), 0);
    (void)snprintf(p->url, sizeof(p->url), "http://127.0.0.1:%d/x", ntohs(a.sin_port));
    assert_int_equal(event_init(&p->stop, &err), ST_OK);
    assert_int_equal(pthread_create(&p->thread, NULL, serve, p), 0);
}

static void close_peer(struct peer *p)
{
    event_fire(&p->stop);
    (void)shutdown(p->listener, SHUT_RDWR);
    assert_int_equal(pthread_join(p->thread, NULL), 0);
    io_close(&p->listener);
    event_done(&p->stop);
}

static struct http_request get(const struct peer *p)
{
    return (struct http_request){
        .method = "GET", .url = p->url, .total_ms = 10000, .max_bytes = 1024};
}

static void plain_get(void **state)
{
    struct peer p = {0};
    struct http_answer a;
    struct error err = {0};

    (void)state;
    open_peer(&p,
              "HTTP/1.1 404 Not Found\r\nContent-Type: Application/JSON; charset=x\r\n"
              "Content-Length: 2\r\n\r\n{}");
    struct http_request req = get(&p);
    assert_int_equal(http_send(&req, &a, &err), ST_OK);
    assert_int_equal(a.status, 404);
    assert_string_equal(a.content_type, "application/json");
    assert_str_is(buf_str(&a.body), "{}");
    http_answer_done(&a);
    close_peer(&p);
    assert_non_null(strstr(p.seen, "GET /x HTTP/1.1\r\n"));
    assert_null(strstr(p.seen, "Authorization"));
    assert_null(strstr(p.seen, "Content-Type"));
}

static void post_with_key(void **state)
{
    struct peer p = {0};
    struct secret key = {0};
    struct http_answer a;
    struct error err = {0};

    (void)state;
    assert_int_equal(secret_set(&key, STR_LIT("sy_abc")), ST_OK);
    open_peer(&p, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    struct http_request req = get(&p);
    req.method = "POST";
    req.body = STR_LIT("{\"a\":1}");
    req.bearer = &key;
    assert_int_equal(http_send(&req, &a, &err), ST_OK);
    http_answer_done(&a);
    close_peer(&p);
    assert_non_null(strstr(p.seen, "POST /x HTTP/1.1\r\n"));
    assert_non_null(strstr(p.seen, "Authorization: Bearer sy_abc\r\n"));
    assert_non_null(strstr(p.seen, "Content-Type: application/json\r\n"));
    assert_non_null(strstr(p.seen, "Content-Length: 7\r\n"));
    secret_done(&key);
}

static void redirect_is_an_answer(void **state)
{
    struct peer p = {0};
    struct http_answer a;
    struct error err = {0};

    (void)state;
    open_peer(&p, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
                  "Content-Length: 0\r\n\r\n");
    struct http_request req = get(&p);
    assert_int_equal(http_send(&req, &a, &err), ST_OK);
    assert_int_equal(a.status, 302);
    http_answer_done(&a);
    close_peer(&p);
}

static enum status size_of(size_t max)
{
    struct peer p = {0};
    struct http_answer a;
    struct error err = {0};

    open_peer(&p, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12345678");
    struct http_request req = get(&p);
    req.max_bytes = max;
    enum status st = http_send(&req, &a, &err);
    http_answer_done(&a);
    close_peer(&p);
    return st;
}

static void answer_limit(void **state)
{
    (void)state;
    assert_int_equal(size_of(9), ST_OK);
    assert_int_equal(size_of(8), ST_OK);
    assert_int_equal(size_of(7), ST_TOO_LARGE);
}

static enum status told(const char *answer, bool silent, char text[512])
{
    struct peer p = {.silent = silent};
    struct http_answer a;
    struct error err = {0};

    open_peer(&p, answer);
    struct http_request req = get(&p);
    req.total_ms = silent ? 200 : 10000;
    enum status st = http_send(&req, &a, &err);
    http_answer_done(&a);
    close_peer(&p);
    (void)snprintf(text, 512, "%s", err.text);
    return st;
}

static void faults(void **state)
{
    char text[512];

    (void)state;
    assert_int_equal(told(NULL, false, text), ST_IO);
    assert_int_equal(told("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1", false, text),
                     ST_IO);
    assert_non_null(strstr(text, "cut short"));
    assert_int_equal(told(NULL, true, text), ST_TIMEOUT);
    assert_non_null(strstr(text, "http://127.0.0.1:"));
    assert_int_equal(told("\r\n\001garbage\r\n\r\n", false, text), ST_IO);
}

static void refused_connection(void **state)
{
    struct peer p = {0};
    struct http_answer a;
    struct error err = {0};

    (void)state;
    open_peer(&p, NULL);
    close_peer(&p); /* now nobody listens there */
    struct http_request req = get(&p);
    assert_int_equal(http_send(&req, &a, &err), ST_IO);
    assert_non_null(strstr(err.text, "connection refused"));
    http_answer_done(&a);
}

static void bad_url(void **state)
{
    struct http_request req = {
        .method = "GET", .url = "file:///etc/passwd", .max_bytes = 64};
    struct http_answer a;
    struct error err = {0};

    (void)state;
    assert_int_equal(http_send(&req, &a, &err), ST_INVALID);
    http_answer_done(&a);
}

static bool swept(void)
{
    struct peer p = {0};
    struct secret key = {0};
    struct http_answer a;
    struct error err = {0};
    enum status st;

    open_peer(&p, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    st = secret_set(&key, STR_LIT("sy_abc"));
    if (st == ST_OK) {
        struct http_request req = get(&p);

        req.bearer = &key;
        st = http_send(&req, &a, &err);
        http_answer_done(&a);
    }
    secret_done(&key);
    close_peer(&p);
    return st == ST_OK;
}

static void out_of_memory(void **state)
{
    (void)state;
    TEST_SWEEP(swept());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_get),
        cmocka_unit_test(post_with_key),
        cmocka_unit_test(redirect_is_an_answer),
        cmocka_unit_test(answer_limit),
        cmocka_unit_test(faults),
        cmocka_unit_test(refused_connection),
        cmocka_unit_test(bad_url),
        cmocka_unit_test(out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
