#!/usr/bin/env python3
"""ctest's JUnit file as result lines: PASS|FAIL|SKIP <tab> name <tab> reason.

usage: count.py FILE PREFIX. A test that ctest could not run is a failure; a skip is what
said so by itself: exit status 77, a "SKIP: name: reason" line, or a cmocka skip(). What
failed tests wrote goes to stderr once more, since ctest ran them in parallel.
"""
import re
import sys
import xml.etree.ElementTree

SAID = re.compile(r"^SKIP: ([^:\n]+)(?:: (.*))?$", re.M)
CMOCKA = re.compile(r"^\[  SKIPPED \] (?!\d+ test)(\S+)", re.M)


def line(verdict, name, reason=""):
    print(verdict, name, " ".join(reason.split()), sep="\t")


def skips_inside(name, text):
    said = SAID.findall(text)
    named = {case for case, _ in said}
    for case, reason in said:
        line("SKIP", f"{name}/{case}", reason or "no reason given")
    for case in dict.fromkeys(CMOCKA.findall(text)):
        if case not in named:
            line("SKIP", f"{name}/{case}", "no reason given")


def main():
    path, prefix = sys.argv[1:3]
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{prefix}:{case.get('name')}"
        text = case.findtext("system-out") or ""
        skipped = case.find("skipped")
        if case.get("status") == "run":
            line("PASS", name)
            skips_inside(name, text)
        elif skipped is not None and "SKIP_" in (skipped.get("message") or ""):
            said = text.strip().split("\n")[-1]
            line("SKIP", name, said or "no reason given")
        else:
            fault = case.find("failure")
            message = fault.get("message") if fault is not None else None
            if not message and skipped is not None:
                message = skipped.get("message")
            line("FAIL", name, message or case.get("status") or "")
            sys.stderr.write(f"== {name}\n{text[-4000:]}\n")


main()
