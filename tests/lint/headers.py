#!/usr/bin/env python3
"""Each public header compiles alone, as every C and C++ that is promised, without a
warning and without hidden padding; each header of the core compiles alone too."""
import os
import shutil
import subprocess
import sys
import tree

WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
PUBLIC = ["-Wpadded"]
STANDARDS = (("c11", "c"), ("c17", "c"), ("c++11", "c++"), ("c++17", "c++"))


def compiles(compiler, language, std, header, flags):
    """The header is included by name, so that "pragma once in main file" is no matter."""
    name = header.split("/", 1)[1]
    run = subprocess.run([compiler, "-x", language, f"-std={std}"] + WARN + flags + ["-"],
                         input=f"#include <{name}>\n" * 2, cwd=tree.TOP, text=True,
                         capture_output=True, check=False)
    return None if run.returncode == 0 else f"{header} as {std} ({compiler}):\n{run.stderr}"


def main():
    compilers = [(c, x) for c, x in (("gcc", "g++"), ("clang-14", "clang++-14"))
                 if shutil.which(c) and shutil.which(x)]
    if not compilers:
        print("neither gcc with g++ nor clang-14 with clang++-14 is installed")
        sys.exit(77)
    faults, count = [], 0
    for header in tree.files("include/", ext=(".h",)):
        for pair in compilers:
            for std, language in STANDARDS:
                count += 1
                faults.append(compiles(pair[language == "c++"], language, std, header,
                                       PUBLIC + ["-Iinclude"]))
    generated = os.path.join(sys.argv[1], "generated")
    for header in tree.files("core/", ext=(".h",)):
        count += 1
        faults.append(compiles(compilers[0][0], "c", "c17", header,
                               ["-Icore", "-Iinclude", f"-I{generated}",
                                "-D_POSIX_C_SOURCE=200809L"]))
    tree.finish([f for f in faults if f], count)


main()
