/* What the files of the store share. Private to the store. */
#ifndef SOULACY_STORE_STORE_PRIVATE_H
#define SOULACY_STORE_STORE_PRIVATE_H

#include "store/readers.h"
#include "store/store.h"
#include "store/writer.h"

struct store {
    int lock_fd;
    struct db_file file;
    struct writer *writer;
    struct readers *readers;
};

#endif
