/* What travels between the core and soulacy-spawn: one SEQPACKET message per plan with
 * its descriptors, one record per end. Both sides are built together and run on one
 * machine, so integers are native. The core encodes (wire.c), the helper decodes
 * (helper/hplan.c). */
#ifndef SOULACY_SANDBOX_WIRE_H
#define SOULACY_SANDBOX_WIRE_H

#include <stdint.h>

#define WIRE_MAGIC 0x31505953u /* "SYP1" */
#define WIRE_EXIT_MAGIC 0x31585953u
#define WIRE_PLAN_MAX (192 * 1024)
#define WIRE_MAX_ARGV 1024
#define WIRE_MAX_ENV 1024
#define WIRE_MAX_PATHS 256
#define WIRE_MAX_PATH 4000 /* bytes of one path, so that a folder name fits behind it */
#define WIRE_NO_LIMIT UINT64_MAX
#define WIRE_KEEP_ID UINT32_MAX
/* The helper's socket. Everything above it is closed when it starts. */
#define WIRE_SOCKET_FD 3

/* Restricted and strict refuse to run where Landlock is older than this. What older
 * versions lack is made up for by the filter: below 3 truncation by path is denied,
 * below 6 signals reach only the sender itself (restricted; strict has its own pids). */
#define WIRE_MIN_LANDLOCK 1

/* Order of the descriptors in SCM_RIGHTS. */
enum wire_fd {
    WIRE_STDIN,
    WIRE_STDOUT,
    WIRE_STDERR,
    WIRE_LIFELINE, /* read end; end of file: kill everything */
    WIRE_REPORT,   /* write end; one line of JSON once the tool runs */
    WIRE_EXIT,     /* write end; a struct wire_exit, then end of file: nothing left */
    WIRE_NFDS
};

/* Followed by NUL-terminated strings: argv, env, cwd, work_root ("" = none), then paths,
 * each with 'r' or 'w' in front. */
struct wire_head {
    uint32_t magic;
    uint32_t size; /* of the whole message */
    uint8_t isolation;
    uint8_t limits_must_hold;
    uint8_t network;
    uint8_t self; /* run the helper's own program whatever argv[0] says (the probe) */
    uint32_t uid, gid;
    uint32_t nargv, nenv, npaths;
    uint64_t cpu_seconds, mem_bytes, open_files, file_bytes, processes;
    int64_t deadline_ms; /* CLOCK_MONOTONIC, INT64_MAX = none */
};

/* Smaller than PIPE_BUF, so it arrives whole. */
struct wire_exit {
    uint32_t magic;
    int32_t exit_code;
    int32_t term_signal;
    uint32_t deadline;
    int64_t cpu_ms;
    int64_t max_rss_bytes;
    char setup[240];
    char layers[512];
};

#endif
