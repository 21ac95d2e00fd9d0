"""Random schemas and values: our check must agree with python3-jsonschema (2020-12).

Usage: schema_diff.py PROBE [COUNT]. Exit 77 (skip) where the package is missing. The
seed is fixed, so a failure can be had again.
"""
import json
import random
import subprocess
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("python3-jsonschema is not installed: skipped")
    sys.exit(77)

NAMES = ["a", "b", "c d", "é"]
TEXTS = ["", "a", "ab", "abc", "é", "😀x", "1", "aaa"]
NUMBERS = [0, 1, -1, 2, 3, 4, 6, 10, 1.5, -0.5, 2.0, 2**53, 2**53 + 1, -(2**53) - 1, 10**20]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]


def value(r, depth):
    kind = r.randrange(9 if depth else 6)
    if kind == 0:
        return None
    if kind == 1:
        return r.choice([True, False])
    if kind in (2, 3):
        return r.choice(NUMBERS)
    if kind in (4, 5):
        return r.choice(TEXTS)
    if kind == 6:
        return [value(r, depth - 1) for _ in range(r.randrange(4))]
    return {n: value(r, depth - 1) for n in r.sample(NAMES, r.randrange(4))}


def schema(r, depth):
    if r.random() < 0.05:
        return r.choice([True, False])
    s = {}
    words = {
        "type": lambda: r.choice(TYPES) if r.random() < 0.7 else r.sample(TYPES, 2),
        "enum": lambda: [value(r, 1) for _ in range(r.randrange(1, 4))],
        "const": lambda: value(r, 1),
        "minimum": lambda: r.choice(NUMBERS),
        "maximum": lambda: r.choice(NUMBERS),
        "exclusiveMinimum": lambda: r.choice(NUMBERS),
        "exclusiveMaximum": lambda: r.choice(NUMBERS),
        "multipleOf": lambda: r.choice([1, 2, 3, 7]),
        "minLength": lambda: r.randrange(4),
        "maxLength": lambda: r.randrange(4),
        "pattern": lambda: r.choice(["^a+$", "b", "^.$", "[0-9]", "^(a|ab)c?$"]),
        "minItems": lambda: r.randrange(3),
        "maxItems": lambda: r.randrange(3),
        "uniqueItems": lambda: r.choice([True, False]),
        "minProperties": lambda: r.randrange(3),
        "maxProperties": lambda: r.randrange(3),
        "required": lambda: r.sample(NAMES, r.randrange(3)),
    }
    if depth:
        sub = lambda: schema(r, depth - 1)
        several = lambda: [sub() for _ in range(r.randrange(1, 4))]
        words.update({
            "properties": lambda: {n: sub() for n in r.sample(NAMES, r.randrange(4))},
            "additionalProperties": sub,
            "items": sub,
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "not": sub,
            "$ref": lambda: r.choice(["#/$defs/x", "#/$defs/y~1z"]),
        })
    for word in r.sample(sorted(words), r.randrange(1, 4)):
        s[word] = words[word]()
    return s


def case(r):
    s = {"properties": {n: schema(r, 3) for n in NAMES}}
    s["$defs"] = {"x": schema(r, 0), "y/z": schema(r, 0)}
    return s, {n: value(r, 3) for n in NAMES if r.random() < 0.8}


def main():
    probe, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4000
    r = random.Random(4711)
    cases = [case(r) for _ in range(count)]
    lines = "".join(json.dumps(s) + "\t" + json.dumps(i) + "\n" for s, i in cases)
    out = subprocess.run([probe], input=lines, capture_output=True, text=True, check=True)
    ours = out.stdout.split()
    assert len(ours) == count, (len(ours), count)
    bad = 0
    for (s, i), got in zip(cases, ours):
        want = "1" if Draft202012Validator(s).is_valid(i) else "0"
        if got != want and bad < 5:
            print("jsonschema says", want, "we say", got, json.dumps(s), json.dumps(i))
        bad += got != want
    print(count, "cases,", ours.count("1"), "valid,", bad, "differ")
    return 1 if bad else 0


sys.exit(main())
