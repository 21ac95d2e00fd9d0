/* The store thread: owner of the only writing connection. Private to the store. */
#ifndef SOULACY_STORE_WRITER_H
#define SOULACY_STORE_WRITER_H

#include "store/db.h"

#include <stdint.h>

struct writer;

/* One write. Embedded as the first member of a struct with its inputs and outputs.
 * run is called on the store thread inside a transaction; it may be undone afterwards
 * when the transaction fails, so outputs count only when writer_run says ST_OK. */
struct write_op {
    enum status (*run)(struct db *db, struct write_op *op, struct error *err);
    void (*drop)(struct write_op *op); /* set: nobody waits; called when it is over */
    enum status status;
    struct error err;
    bool done;
};

struct writer_stats {
    uint64_t transactions, writes, failures;
    size_t queued;
};

/* file is borrowed for good. Takes db on success: open, with the current schema. */
enum status writer_start(const struct db_file *file, struct db *db, struct writer **out,
                         struct error *err) SY_MUST_CHECK;
/* Runs what is queued, ends the thread, closes the connection. NULL is fine. */
void writer_stop(struct writer *w);
/* Queue the write and wait until it is on disk. ST_BUSY: the queue is full. */
enum status writer_run(struct writer *w, struct write_op *op,
                       struct error *err) SY_MUST_CHECK;
/* Queue the write and go on; op->drop is called at the end, also when this fails. */
enum status writer_post(struct writer *w, struct write_op *op,
                        struct error *err) SY_MUST_CHECK;
/* What the last transaction said. After a failure this also queues a small write, so
 * that a disk that is fine again is noticed. */
enum status writer_health(struct writer *w, struct error *err) SY_MUST_CHECK;
void writer_stats(struct writer *w, struct writer_stats *out);

#endif
