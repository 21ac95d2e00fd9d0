#define _GNU_SOURCE /* strcasestr, pipe2 */
/* process_overhead: POST /api/v1/tools/run of a trivial tool against a bare cold
 * `python3 -I` that reads the same function from stdin and calls it with the same JSON.
 *
 *   bench_tool_run NAME TARGET PORT KEY AGENT PYTHON TOOLFILE ROUNDS
 */
#include "bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static char reader[] = "import sys,json\n"
                       "d=json.loads(sys.stdin.read())\n"
                       "g={}\n"
                       "exec(compile(d['src'],'add.py','exec'),g)\n"
                       "print(json.dumps(g['add'](**d['args'])))\n";

/* The tool's text as a JSON string; it has quotes, newlines and backslashes at most. */
static void escape(const char *text, char *out, size_t cap)
{
    size_t n = 0;

    for (; *text != '\0' && n + 3 < cap; text++) {
        if (*text == '\n') {
            out[n++] = '\\';
            out[n++] = 'n';
        } else {
            if (*text == '"' || *text == '\\') {
                out[n++] = '\\';
            }
            out[n++] = *text;
        }
    }
    out[n] = '\0';
}

static double bare(char *python, const char *input)
{
    static char isolated[] = "-I", command[] = "-c";
    char *argv[] = {python, isolated, command, reader, NULL};
    posix_spawn_file_actions_t fa;
    int in[2], out[2], status;
    char answer[256];
    size_t got = 0;
    ssize_t n;
    pid_t pid;
    double begin = bench_now(), took;

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
        bench_die("pipe");
    }
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, in[0], 0);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    if (posix_spawn(&pid, python, &fa, NULL, argv, environ) != 0) {
        bench_die("cannot start python");
    }
    close(in[0]);
    close(out[1]);
    if (write(in[1], input, strlen(input)) < 0) {
        bench_die("write");
    }
    close(in[1]);
    while ((n = read(out[0], answer + got, sizeof(answer) - 1 - got)) > 0) {
        got += (size_t)n;
    }
    took = bench_now() - begin; /* at the end of its answer, as for the gateway */
    answer[got] = '\0';
    close(out[0]);
    waitpid(pid, &status, 0);
    posix_spawn_file_actions_destroy(&fa);
    if (strcmp(answer, "42\n") != 0) {
        bench_die("the bare call gave another answer");
    }
    return took;
}

static double through(int fd, const char *request)
{
    static char answer[65536];
    double begin = bench_now(), took;
    int status = bench_request(fd, request, answer, sizeof(answer));

    took = bench_now() - begin;
    if (status != 200 || strstr(answer, "\"result\":\"42\"") == NULL) {
        fprintf(stderr, "%s\n", answer);
        bench_die("the gateway gave another answer");
    }
    return took;
}

int main(int argc, char **argv)
{
    static char tool[16384], text[32768], input[40000], request[4096], body[1024];
    double *a, *b;
    size_t rounds, n;
    FILE *f;
    int fd;

    if (argc != 9) {
        bench_die("usage: NAME TARGET PORT KEY AGENT PYTHON TOOLFILE ROUNDS");
    }
    f = fopen(argv[7], "r");
    n = f != NULL ? fread(tool, 1, sizeof(tool) - 1, f) : 0;
    if (n == 0) {
        bench_die("cannot read the tool's file");
    }
    fclose(f);
    escape(tool, text, sizeof(text));
    snprintf(input, sizeof(input), "{\"src\":\"%s\",\"args\":{\"a\":40,\"b\":2}}", text);
    snprintf(body, sizeof(body),
             "{\"agent_id\":\"%s\",\"tool\":\"add\",\"args\":{\"a\":40,\"b\":2}}",
             argv[5]);
    snprintf(request, sizeof(request),
             "POST /api/v1/tools/run HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n"
             "Authorization: Bearer %s\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             argv[3], argv[4], strlen(body), body);
    rounds = (size_t)atoi(argv[8]);
    a = calloc(rounds, sizeof(*a));
    b = calloc(rounds, sizeof(*b));
    fd = bench_connect(atoi(argv[3]));
    if (a == NULL || b == NULL || fd < 0) {
        bench_die("cannot connect");
    }
    (void)through(fd, request);
    (void)bare(argv[6], input);
    for (size_t i = 0; i < rounds; i++) {
        a[i] = through(fd, request);
        b[i] = bare(argv[6], input);
    }
    bench_print(argv[1], bench_median(a, rounds) / bench_median(b, rounds), atof(argv[2]),
                false);
    free(a);
    free(b);
    close(fd);
    return 0;
}
