/* The preamble as bytes, made by the build from harness.py and harness_cold.py. */
#ifndef SOULACY_EXEC_HARNESS_TEXT_H
#define SOULACY_EXEC_HARNESS_TEXT_H

#include <stddef.h>

extern const unsigned char harness_text[]; /* "<decimal length>\n<source>", then a NUL */
extern const size_t harness_text_len;      /* without the NUL */
extern const size_t harness_text_head;     /* bytes of "<decimal length>\n" */

#endif
