#!/usr/bin/env python3
"""Branch coverage of the pure files, as result lines (see count.py).

usage: coverage.py BUILD_DIR LOG. The list is tests/coverage-pure.txt; each file must have
every branch taken. assert() is left out: input never trips one.
"""
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def pure_files():
    with open(os.path.join(TOP, "tests/coverage-pure.txt"), encoding="utf-8") as f:
        lines = (line.split("#")[0].strip() for line in f)
        return list(dict.fromkeys(line for line in lines if line))


def measure(build):
    done = subprocess.run(
        ["gcovr", "--root", TOP, "--object-directory", build, "--json",
         "--exclude-unreachable-branches", "--exclude-throw-branches",
         "--exclude-lines-by-pattern", r".*\bassert\(.*", build],
        check=True, stdout=subprocess.PIPE)
    return {f["file"]: f["lines"] for f in json.loads(done.stdout)["files"]}


def missing(lines):
    """(line number, branches not taken) of lines that were meant to run."""
    for line in lines:
        if line.get("gcovr/noncode") or line.get("gcovr/excluded"):
            continue
        untaken = sum(1 for b in line["branches"] if b["count"] == 0)
        if untaken or line["count"] == 0:
            yield line["line_number"], untaken


def main():
    build, log = sys.argv[1:3]
    wanted = pure_files()
    if not wanted:
        print("SKIP", "coverage", "tests/coverage-pure.txt names no file", sep="\t")
        return
    found = measure(build)
    with open(log, "a", encoding="utf-8") as out:
        for name in wanted:
            if name not in found:
                print("FAIL", f"coverage:{name}", "no data: not built or not run", sep="\t")
                continue
            holes = list(missing(found[name]))
            for number, untaken in holes:
                out.write(f"{name}:{number}: " + (f"{untaken} branches not taken\n"
                                                  if untaken else "never run\n"))
            verdict = "FAIL" if holes else "PASS"
            print(verdict, f"coverage:{name}",
                  f"{len(holes)} lines with a branch not taken" if holes else "", sep="\t")


main()
