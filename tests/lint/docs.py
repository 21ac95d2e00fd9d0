#!/usr/bin/env python3
"""What README and docs name must exist: each test of a "promise -> test" table, and each
path of the tree that is written as code or as a link.

A table whose last column is headed "test" (or "tests", "proved by") names its tests in
backticks: a ctest name (unit.gate), a file, or a word that stands in a file of tests/.
"""
import os
import re
import tree

TEST_HEADS = ("test", "tests", "proved by")
TICKS = re.compile(r"`([^`]+)`")
PATH = re.compile(r"^(?:core|plugins|include|plugin-api|config|tests|docs)/[\w./-]*$")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)

names = tree.tracked()
folders = {os.path.dirname(n) for n in names}
everything = set(names) | folders | {p for f in folders for p in
                                     ("/".join(f.split("/")[:n]) for n in range(1, 9))}
test_text = "\n".join(tree.read(n) for n in names if n.startswith("tests/")
                      and n.endswith((".c", ".h", ".py", ".sh", ".txt")))


def unit_names():
    """ctest names, as the functions of SoulacyTest.cmake make them."""
    found = set()
    for name in names:
        if name.startswith(("tests/", "plugins/", "plugin-api/")) and \
                name.endswith("CMakeLists.txt"):
            text = tree.read(name)
            found |= {f"unit.{n}" for n in re.findall(r"soulacy_unit_test\(\s*([\w.-]+)", text)}
            found |= {f"corpus.{n}" for n in
                      re.findall(r"soulacy_fuzz_target\(\s*([\w.-]+)", text)}
            found |= set(re.findall(r"soulacy_script_test\(\s*([\w.-]+)", text))
            found |= set(re.findall(r"add_test\(\s*NAME\s+([\w.-]+)", text))
    return found


def test_exists(word, known):
    word = word.split(" ")[0]
    return (word in known or word.rstrip("/") in everything
            or re.search(r"(?<!\w)" + re.escape(word) + r"(?!\w)", test_text) is not None)


def check_tables(file, text, known):
    is_test_table = False
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("|"):
            is_test_table = False
            continue
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if cells[-1].lower().strip("*") in TEST_HEADS:
            is_test_table = True
            continue
        if not is_test_table or set(line) <= set("|-: \t"):
            continue
        words = TICKS.findall(cells[-1])
        if not words:
            yield f"{file}:{number}: a promise without a test"
        for word in words:
            if not test_exists(word, known):
                yield f"{file}:{number}: no such test: {word}"


def check_paths(file, text):
    for number, line in enumerate(text.split("\n"), 1):
        for word in TICKS.findall(line):
            word = word.split(" ")[-1].rstrip("/") if " " in word else word.rstrip("/")
            if PATH.match(word) and word not in everything:
                yield f"{file}:{number}: no such file: {word}"
        for target in LINK.findall(line):
            if ":" in target:
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(file), target))
            if path not in everything:
                yield f"{file}:{number}: broken link: {target}"


faults = []
pages = [n for n in names if n.endswith(".md")]
known_tests = unit_names()
for page in pages:
    body = tree.read(page)
    faults += check_tables(page, body, known_tests)
    faults += check_paths(page, FENCE.sub(lambda m: "\n" * m.group(0).count("\n"), body))
tree.finish(faults, len(pages))
