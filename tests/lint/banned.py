#!/usr/bin/env python3
"""Functions that must not be called, by text: also where the compiler does not look."""
import re
import tree

EVERYWHERE = """strcpy strcat strncpy strncat sprintf vsprintf gets strtok atoi atol atoll
    strtol strtoll strtoul strtoull sscanf alloca gmtime localtime asctime ctime rand system
    popen tmpnam mktemp setenv putenv access sleep usleep dlclose""".split()
OUTSIDE_BASE = "malloc calloc realloc reallocarray free strdup strndup asprintf vasprintf".split()
OUTSIDE_MAIN = "exit abort quick_exit".split()
NOT_A_CALL = r"(?<![\w.])(?<!->)"
WORDS = re.compile(r"\b(TODO|FIXME|XXX)\b")
FLAGS = re.compile(r"\b(RTLD_GLOBAL|RTLD_DEEPBIND|RTLD_LAZY)\b")

# file: names it may call, and why.
ALLOWED = {
    # base wraps them.
    "core/base/": set(EVERYWHERE) | set(OUTSIDE_BASE),
    # A program of its own, with its own main().
    "core/sandbox/helper/": {"exit"},
    "core/main.c": set(OUTSIDE_MAIN),
    # Plugins cannot reach base: only memory, and each checks it.
    "plugins/": set(OUTSIDE_BASE),
    "plugin-api/template/": set(OUTSIDE_BASE),
}


def allowed(name):
    return set().union(*(names for prefix, names in ALLOWED.items()
                         if name.startswith(prefix)))


faults = []
checked = tree.files("core/", "plugins/", "plugin-api/", "include/")
calls = re.compile(NOT_A_CALL + r"(" + "|".join(EVERYWHERE + OUTSIDE_BASE + OUTSIDE_MAIN)
                   + r")\s*\(")
for file in checked:
    if file == "core/base/banned.h":
        continue
    text = tree.code(file)
    passes = allowed(file)
    for match in calls.finditer(text):
        if match.group(1) not in passes:
            faults.append(f"{file}:{tree.line_of(text, match.start())}: "
                          f"{match.group(1)}() is banned here")
    for match in FLAGS.finditer(text):
        faults.append(f"{file}:{tree.line_of(text, match.start())}: {match.group(1)}")
    raw = tree.read(file)
    for match in WORDS.finditer(raw):
        faults.append(f"{file}:{tree.line_of(raw, match.start())}: {match.group(1)} left")
tree.finish(faults, len(checked))
