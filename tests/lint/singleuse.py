#!/usr/bin/env python3
"""A function of core that is not static and that no other file uses should be static.

Tests count as users. So do macros and inline functions of headers: a name that stands in
headers more than once is taken as used.
"""
import re
from collections import Counter
import tree

WORD = re.compile(r"[A-Za-z_]\w*")
texts = {f: tree.code(f) for f in tree.files("core/", "plugins/", "tests/", "plugin-api/")}
users = {}
in_headers = Counter()
for file, text in texts.items():
    words = WORD.findall(text)
    if file.endswith(".h"):
        in_headers.update(words)
    else:
        for word in set(words):
            users.setdefault(word, set()).add(file)

faults = []
count = 0
for file, text in texts.items():
    if not (file.startswith("core/") and file.endswith(".c")):
        continue
    for name, is_static, _, line, _ in tree.functions(text):
        if is_static or name == "main":
            continue
        count += 1
        if users[name] == {file} and in_headers[name] < 2:
            faults.append(f"{file}:{line}: {name} is used nowhere else: static, or gone")
tree.finish(faults, count)
