/* Functions that do not compile in this tree (docs: conventions, rule 25). The build
 * force-includes this file (-include) before line 1 of every source, so it may include
 * no system header: that would fix the feature macros before a file's own _GNU_SOURCE.
 * Instead each function is declared here with `deprecated`, an attribute that later
 * declarations in system headers inherit, and any use of a deprecated function is made
 * an error. Members and variables of the same name (`policy.system`) stay usable.
 *
 * glibc on LP64 is assumed: time_t is long, FILE is struct _IO_FILE.
 * alloca is a compiler built-in, so it is caught by -Walloca. */
#ifndef SOULACY_BASE_BANNED_H
#define SOULACY_BASE_BANNED_H

#ifndef __cplusplus

#pragma GCC diagnostic error "-Wdeprecated-declarations"
#pragma GCC diagnostic error "-Walloca"

#define SY_BANNED(use) __attribute__((deprecated("banned here: use " use)))

struct tm;
struct _IO_FILE;

SY_BANNED("struct buf") char *strcpy(char *, const char *);
SY_BANNED("struct buf") char *strcat(char *, const char *);
SY_BANNED("struct buf") char *strncpy(char *, const char *, __SIZE_TYPE__);
SY_BANNED("struct buf") char *strncat(char *, const char *, __SIZE_TYPE__);
SY_BANNED("buf_addf or snprintf") int sprintf(char *, const char *, ...);
SY_BANNED("vsnprintf") int vsprintf(char *, const char *, __builtin_va_list);
SY_BANNED("io_read") char *gets(char *);
SY_BANNED("str_split") char *strtok(char *, const char *);
SY_BANNED("str_to_i64") int atoi(const char *);
SY_BANNED("str_to_i64") long atol(const char *);
SY_BANNED("str_to_i64") long long atoll(const char *);
SY_BANNED("str_to_i64") long strtol(const char *, char **, int);
SY_BANNED("str_to_i64") long long strtoll(const char *, char **, int);
SY_BANNED("str_to_i64") unsigned long strtoul(const char *, char **, int);
SY_BANNED("str_to_i64") unsigned long long strtoull(const char *, char **, int);
SY_BANNED("str_to_i64") int sscanf(const char *, const char *, ...);
SY_BANNED("clock_format_utc") struct tm *gmtime(const long *);
SY_BANNED("clock_format_utc") struct tm *localtime(const long *);
SY_BANNED("clock_format_utc") char *asctime(const struct tm *);
SY_BANNED("clock_format_utc") char *ctime(const long *);
SY_BANNED("io_random") int rand(void);
SY_BANNED("the spawn helper") int system(const char *);
SY_BANNED("the spawn helper") struct _IO_FILE *popen(const char *, const char *);
SY_BANNED("io_write_file") char *tmpnam(char *);
SY_BANNED("io_write_file") char *mktemp(char *);
SY_BANNED("the plan's environment") int setenv(const char *, const char *, int);
SY_BANNED("the plan's environment") int putenv(char *);
SY_BANNED("open, then fstat") int access(const char *, int);

#undef SY_BANNED

#endif
#endif
