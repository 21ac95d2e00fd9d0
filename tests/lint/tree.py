"""What the lint scripts share: the tracked files, and C text without its comments."""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tracked():
    """Files of the tree, relative to its top; without git (a tarball) all but build/."""
    try:
        out = subprocess.run(["git", "-C", TOP, "ls-files", "-z"], check=True,
                             capture_output=True).stdout.decode()
        names = [n for n in out.split("\0") if n]
    except (OSError, subprocess.CalledProcessError):
        names = []
        for folder, dirs, files in os.walk(TOP):
            dirs[:] = [d for d in dirs if d not in ("build", ".git")]
            names += [os.path.relpath(os.path.join(folder, f), TOP) for f in files]
    return sorted(n for n in names if os.path.isfile(os.path.join(TOP, n)))


def files(*prefixes, ext=(".c", ".h")):
    return [n for n in tracked() if n.startswith(prefixes) and n.endswith(ext)]


def read(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as f:
        return f.read()


TOKENS = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)


def code(name):
    """The text with comments and literals blanked, lines kept."""
    def blank(match):
        text = match.group(0)
        if text[0] in "\"'":
            return text[0] + " " * (len(text) - 2) + text[0]
        return re.sub(r"[^\n]", " ", text)
    return TOKENS.sub(blank, read(name))


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


HEAD = re.compile(r"^(?![\s#}/{*])[^;={}()]*?\b([A-Za-z_]\w*)\s*\((?:[^;{}]*?)\)\s*\n?\{", re.M)


def functions(text):
    """(name, is_static, offset, first line, last line) of each function of code() text."""
    found = []
    for match in HEAD.finditer(text):
        end = text.find("\n}", match.end())
        if end < 0:
            continue
        head = text[match.start():match.start(1)]
        found.append((match.group(1), bool(re.search(r"\bstatic\b", head)), match.start(1),
                      line_of(text, match.start()), line_of(text, end + 1)))
    return found


def finish(faults, checked):
    for fault in faults:
        print(fault)
    print(f"{checked} checked, {len(faults)} faults")
    sys.exit(1 if faults else 0)
