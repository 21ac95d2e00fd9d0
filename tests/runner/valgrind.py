#!/usr/bin/env python3
"""The unit tests of a build under valgrind, as result lines (see count.py).

usage: valgrind.py BUILD_DIR JOBS LOG. Tests with the label no-valgrind are left out: their
subject (seccomp, a static child, timing) does not exist under it.
"""
import concurrent.futures
import json
import os
import subprocess
import sys

VALGRIND = ["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full",
            "--show-leak-kinds=definite,indirect",
            "--errors-for-leak-kinds=definite,indirect", "--trace-children=no",
            "--track-fds=no", "--num-callers=24"]
SECONDS = 300


def props(test):
    return {p["name"]: p["value"] for p in test.get("properties", [])}


def run(test):
    own = props(test)
    env = dict(os.environ, SOULACY_CORPUS_MUTATIONS="20", SOULACY_UNDER_VALGRIND="1")
    for pair in own.get("ENVIRONMENT", []):
        name, _, value = pair.partition("=")
        env[name] = value
    try:
        done = subprocess.run(VALGRIND + test["command"], env=env, timeout=SECONDS,
                              cwd=own.get("WORKING_DIRECTORY"), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        return "timeout", (late.stdout or b"").decode(errors="replace")


def main():
    build, jobs, log = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    listed = subprocess.run(["ctest", "--test-dir", build, "-L", "^unit$", "-LE",
                             "^no-valgrind$", "--show-only=json-v1"], check=True,
                            stdout=subprocess.PIPE)
    tests = [t for t in json.loads(listed.stdout)["tests"] if "command" in t]
    if not tests:
        print("FAIL", "valgrind", "there is no unit test", sep="\t")
        sys.exit(1)
    with open(log, "a", encoding="utf-8") as out, \
            concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for test, (status, text) in zip(tests, pool.map(run, tests)):
            name = f"valgrind:{test['name']}"
            if status in (0, 77):
                print("PASS" if status == 0 else "SKIP", name,
                      "" if status == 0 else (text.strip().split("\n")[-1] or "no reason given"),
                      sep="\t")
            else:
                print("FAIL", name, "valgrind found errors" if status == 99
                      else f"ended with {status}", sep="\t")
                out.write(f"== {name}\n{text[-8000:]}\n")


main()
