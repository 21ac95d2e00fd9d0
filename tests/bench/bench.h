/* Shared by the benchmark programs: time, medians, one JSON line a figure, and a small
 * keep-alive HTTP client that adds next to nothing to what it measures. */
#ifndef SOULACY_TESTS_BENCH_H
#define SOULACY_TESTS_BENCH_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static inline double bench_now(void) /* milliseconds */
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static inline double bench_median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), bench_compare);
    return n == 0 ? 0 : v[n / 2];
}

/* target: the value may be at most (or, with at_least, at least) this. */
static inline void bench_print(const char *name, double value, double target,
                               bool at_least)
{
    bool ok = at_least ? value >= target : value <= target;
    printf("{\"name\":\"%s\",\"value\":%.4g,\"target\":%.4g,\"ok\":%s}\n", name, value,
           target, ok ? "true" : "false");
    fflush(stdout);
}

static inline void bench_die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static inline int bench_connect(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* One request on a kept connection; the answer's body ends with Content-Length. Returns
 * the HTTP status, or -1; the whole answer is in out. */
static inline int bench_request(int fd, const char *request, char *out, size_t cap)
{
    size_t len = strlen(request), got = 0;
    ssize_t n = write(fd, request, len);

    if (n != (ssize_t)len) {
        return -1;
    }
    while (got + 1 < cap) {
        char *end, *length;

        n = read(fd, out + got, cap - 1 - got);
        if (n <= 0) {
            return -1;
        }
        got += (size_t)n;
        out[got] = '\0';
        end = strstr(out, "\r\n\r\n");
        length = strcasestr(out, "content-length:");
        if (end != NULL && length != NULL && length < end &&
            got >= (size_t)(end + 4 - out) + strtoul(length + 15, NULL, 10)) {
            return atoi(out + 9);
        }
    }
    return -1;
}

#endif
