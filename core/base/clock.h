/* Time. Inside: monotonic milliseconds. Unix time only at the edges. */
#ifndef SOULACY_BASE_CLOCK_H
#define SOULACY_BASE_CLOCK_H

#include <stdint.h>

#define CLOCK_NEVER INT64_MAX

int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);
int64_t clock_unix_ms(void);
/* Milliseconds from now until deadline_ms for poll(2): 0 when past, -1 for CLOCK_NEVER,
 * capped at 1 hour. */
int clock_poll_timeout(int64_t deadline_ms);
/* "2026-01-31T12:00:00.123Z" for a Unix time in ms; buf of at least 32 bytes. */
void clock_format_utc(int64_t unix_ms, char out[32]);

#endif
