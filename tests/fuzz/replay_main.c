/*
 * Comes in: a directory of inputs for one fuzz target. Goes out: exit status 0 when the
 * target lived through each of them, and through each of them with one byte changed, up
 * to a bound. Never uses random numbers: the same corpus is the same test each time.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX_BYTES (1024U * 1024U)
#define MUTATIONS_MAX 2000U  /* of one input */
#define MUTATED_BYTES 65536U /* longer inputs are replayed as they are */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t flips[] = {0x01, 0x80, 0xff};

/* A copy of exactly the right size, so that valgrind and asan see a read past it. */
static void run_once(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1U);
    if (!copy) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

/* Fewer where each costs more (valgrind). */
static size_t mutations_wanted(void)
{
    const char *text = getenv("SOULACY_CORPUS_MUTATIONS");
    unsigned long n = text ? strtoul(text, NULL, 10) : 0;
    return n > 0 && n < MUTATIONS_MAX ? (size_t)n : MUTATIONS_MAX;
}

static void run_mutations(uint8_t *data, size_t size)
{
    if (size == 0 || size > MUTATED_BYTES) {
        return;
    }
    size_t step = size * sizeof flips / mutations_wanted() + 1U;
    for (size_t i = 0; i < size; i += step) {
        for (size_t f = 0; f < sizeof flips; f++) {
            uint8_t was = data[i];
            data[i] = (uint8_t)(was ^ flips[f]);
            run_once(data, size);
            data[i] = was;
        }
        run_once(data, i); /* and cut off there */
    }
}

static int replay_file(const char *dir, const char *name, uint8_t *data)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (len < 0 || (size_t)len >= sizeof path) {
        fprintf(stderr, "%s: name too long\n", name);
        return 1;
    }
    FILE *file = fopen(path, "rbe");
    if (!file) {
        perror(path);
        return 1;
    }
    size_t size = fread(data, 1, INPUT_MAX_BYTES, file);
    int bad = ferror(file);
    (void)fclose(file);
    if (bad) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return 1;
    }
    run_once(data, size);
    run_mutations(data, size);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s corpus-directory\n", argv[0]);
        return 2;
    }
    struct dirent **entries = NULL;
    int count = scandir(argv[1], &entries, NULL, alphasort);
    uint8_t *data = malloc(INPUT_MAX_BYTES);
    int files = 0;
    int bad = count < 0 || !data;
    for (int i = 0; i < count; i++) {
        if (!bad && entries[i]->d_name[0] != '.') {
            bad = replay_file(argv[1], entries[i]->d_name, data);
            files++;
        }
        free(entries[i]);
    }
    free(entries);
    free(data);
    if (files == 0) {
        fprintf(stderr, "%s: no corpus\n", argv[1]);
        return 1;
    }
    printf("%d inputs replayed\n", files);
    return bad;
}
