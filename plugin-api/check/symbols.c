/* In: the file. Out: a complaint for each symbol it exports beyond its entry. Reads the
 * dynamic symbol table of a 64-bit ELF file itself and trusts no number in it. */
#include "check.h"

#include <elf.h>
#include <string.h>

#define FILE_MAX ((size_t)256 * 1024 * 1024)

/* n elements of `size` bytes at `at` lie inside the file. */
static bool inside(struct str file, uint64_t at, uint64_t n, uint64_t size)
{
    return at <= file.len && (size == 0 || n <= (file.len - at) / size);
}

static bool section(struct str file, uint64_t i, Elf64_Shdr *out)
{
    Elf64_Ehdr h;
    memcpy(&h, file.ptr, sizeof h);
    if (h.e_shentsize != sizeof *out || i >= h.e_shnum ||
        !inside(file, h.e_shoff, h.e_shnum, sizeof *out)) {
        return false;
    }
    memcpy(out, file.ptr + h.e_shoff + i * sizeof *out, sizeof *out);
    return true;
}

static bool exported(const Elf64_Sym *s)
{
    unsigned char bind = ELF64_ST_BIND(s->st_info);
    unsigned char see = ELF64_ST_VISIBILITY(s->st_other);
    return s->st_shndx != SHN_UNDEF && s->st_name != 0 &&
           (bind == STB_GLOBAL || bind == STB_WEAK || bind == STB_GNU_UNIQUE) &&
           (see == STV_DEFAULT || see == STV_PROTECTED);
}

/* Each exported name of one symbol table; false when the file is damaged. */
static bool look(struct check *c, struct str file, const Elf64_Shdr *table,
                 size_t *entries)
{
    Elf64_Shdr strings;
    if (!section(file, table->sh_link, &strings) ||
        !inside(file, table->sh_offset, table->sh_size, 1) ||
        !inside(file, strings.sh_offset, strings.sh_size, 1)) {
        return false;
    }
    for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym s;
        memcpy(&s, file.ptr + table->sh_offset + i * sizeof s, sizeof s);
        if (!exported(&s) || s.st_name >= strings.sh_size) {
            continue;
        }
        const char *name = file.ptr + strings.sh_offset + s.st_name;
        size_t room = strings.sh_size - s.st_name;
        struct str n = str_n(name, strnlen(name, room));
        if (str_starts(n, STR_LIT("soulacy_plugin_v"))) {
            (*entries)++;
        } else {
            check_fail(
                c,
                "exports %.*s: everything but soulacy_plugin_v1 is to be static or "
                "hidden",
                STR_ARG(n));
        }
    }
    return true;
}

void check_symbols(struct check *c)
{
    struct buf b;
    struct error err;
    Elf64_Ehdr h;
    size_t entries = 0;
    bool whole = false;
    buf_init(&b, FILE_MAX);
    if (io_read_file(c->plugin_path, FILE_MAX, &b, &err) != ST_OK) {
        check_fail(c, "%s", err.text);
        buf_done(&b);
        return;
    }
    struct str file = buf_str(&b);
    if (file.len >= sizeof h && memcmp(file.ptr, ELFMAG, SELFMAG) == 0 &&
        file.ptr[EI_CLASS] == ELFCLASS64) {
        memcpy(&h, file.ptr, sizeof h);
        whole = true;
        for (uint64_t i = 0; whole && i < h.e_shnum; i++) {
            Elf64_Shdr s;
            whole = section(file, i, &s) &&
                    (s.sh_type != SHT_DYNSYM || look(c, file, &s, &entries));
        }
    }
    if (!whole) {
        check_fail(c, "is no whole 64-bit ELF file");
    } else if (entries == 0) {
        check_fail(c, "does not export soulacy_plugin_v1");
    }
    buf_done(&b);
}
