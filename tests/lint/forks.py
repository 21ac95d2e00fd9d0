#!/usr/bin/env python3
"""Processes are made in core/sandbox/helper and nowhere else."""
import re
import tree

FORK = r"v?fork|_Fork|clone3?|posix_spawnp?|popen|system|wordexp"
EXEC = r"exec(?:l|le|lp|v|ve|vp|vpe|veat)|fexecve"
CALLS = re.compile(r"(?<![\w.])(?<!->)(" + FORK + "|" + EXEC + r")\s*\(")
NUMBERS = re.compile(r"\b(?:SYS|__NR)_(fork|vfork|clone3?|execve(?:at)?)\b")

# The helper has to be started once, and __exec-sandbox replaces itself by its command.
ALLOWED = {
    "core/sandbox/spawn.c": {"posix_spawn"},
    "core/sandbox/exec_sandbox.c": {"execve", "execv", "execvp", "execvpe"},
}

faults = []
checked = [f for f in tree.files("core/", "plugins/", "plugin-api/", "include/")
           if not f.startswith("core/sandbox/helper/") and f != "core/base/banned.h"]
for file in checked:
    text = tree.code(file)
    for pattern in (CALLS, NUMBERS):
        for match in pattern.finditer(text):
            if match.group(1) not in ALLOWED.get(file, ()):
                faults.append(f"{file}:{tree.line_of(text, match.start())}: "
                              f"{match.group(0).strip()} outside the helper")
tree.finish(faults, len(checked))
