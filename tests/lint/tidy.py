#!/usr/bin/env python3
"""clang-tidy over the core's and the plugins' part of compile_commands.json.

usage: tidy.py BUILD_DIR. A file whose text, headers, flags and .clang-tidy are those of
the last clean run is not run again (BUILD_DIR/tidy-cache).
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tree

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+[<"]([^>"]+)[>"]', re.M)
KEEP = re.compile(r"^-(D|I|U|std=)")
KEEP_WITH_NEXT = ("-include", "-isystem", "-I", "-D")


def flags_of(entry):
    """What the front end needs: gcc's own warnings would be errors to clang."""
    words = entry["arguments"] if "arguments" in entry else shlex.split(entry["command"])
    kept = []
    for i, word in enumerate(words):
        if word in KEEP_WITH_NEXT:
            kept += [word, words[i + 1]]
        elif KEEP.match(word) and "FORTIFY" not in word:
            kept.append(word)
    return kept


def closure(file, roots, seen):
    """Every header of ours that the file sees."""
    if file in seen:
        return
    seen.add(file)
    with open(file, encoding="utf-8") as f:
        text = f.read()
    for target in INCLUDE.findall(text):
        for root in [os.path.dirname(file)] + roots:
            path = os.path.normpath(os.path.join(root, target))
            if os.path.isfile(path):
                closure(path, roots, seen)
                break


def settings(file):
    """Every .clang-tidy above the file, which may add to the one at the top."""
    found, folder = [], os.path.dirname(file)
    while folder.startswith(tree.TOP):
        path = os.path.join(folder, ".clang-tidy")
        found += [path] if os.path.isfile(path) else []
        folder = os.path.dirname(folder)
    return found


def digest(file, flags, build):
    roots = [f[2:] for f in flags if f.startswith("-I") and len(f) > 2]
    seen = set()
    closure(file, roots, seen)
    for i, flag in enumerate(flags):
        if flag == "-include":
            closure(flags[i + 1], roots, seen)
    state = hashlib.sha256()
    # The place of the build is no part of what was checked.
    state.update(" ".join(flags).replace(build, "").replace(tree.TOP, "").encode())
    for path in sorted(seen) + settings(file):
        with open(path, "rb") as f:
            state.update(hashlib.sha256(f.read()).digest())
    return state.hexdigest()


def check(tool, file, flags):
    run = subprocess.run([tool, "--quiet", file, "--"] + flags, cwd=tree.TOP, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return run.returncode, run.stdout


def main():
    tool = shutil.which("clang-tidy-14")
    if not tool:
        print("clang-tidy-14 is not installed")
        sys.exit(77)
    build = os.path.abspath(sys.argv[1])
    cache = os.path.join(build, "tidy-cache")
    os.makedirs(cache, exist_ok=True)
    commands = os.path.join(build, "compile_commands.json")
    if not os.path.exists(commands):
        print(f"{commands} is not there: configure first")
        sys.exit(1)
    with open(commands, encoding="utf-8") as f:
        entries = json.load(f)
    wanted = tuple(os.path.join(tree.TOP, d) + "/" for d in ("core", "plugins"))
    jobs, total = {}, 0
    for entry in entries:
        file = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        if not file.startswith(wanted):
            continue
        total += 1
        flags = flags_of(entry)
        key = os.path.join(cache, digest(file, flags, build))
        if not os.path.exists(key):
            jobs[key] = (file, flags)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = {pool.submit(check, tool, *job): key for key, job in jobs.items()}
        for run in concurrent.futures.as_completed(runs):
            status, text = run.result()
            if status == 0:
                with open(runs[run], "w", encoding="utf-8"):
                    pass
            else:
                bad += 1
                print(text or f"{jobs[runs[run]][0]}: clang-tidy ended with {status}")
    print(f"{total} files, {len(jobs)} run, {bad} with faults")
    sys.exit(1 if bad else 0)


main()
