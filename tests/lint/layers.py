#!/usr/bin/env python3
"""Who may include whom: the layers of core/, plugins, and the public headers."""
import os
import re
import tree

# Read from the build, so that there is one list.
LIST = re.search(r"set\(SOULACY_LAYERS(.*?)\)", tree.read("config/cmake/SoulacyModule.cmake"),
                 re.S).group(1)
LAYERS = {name: n for n, line in enumerate(re.findall(r'"([^"]+)"', LIST))
          for name in line.split(",")}
LAYERS["main"] = max(LAYERS.values()) + 1
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.M)
PUBLIC_SYSTEM = {"stddef.h", "stdint.h"}


def includes(name):
    text = tree.read(name)
    for match in INCLUDE.finditer(text):
        yield match.group(1), match.group(2), tree.line_of(text, match.start())


def module(name):
    """core/gate/x.c and gate/x.h are gate; core/main.c and runtime.c themselves."""
    parts = name.split("/")
    parts = parts[1:] if parts[0] == "core" else parts
    return parts[0] if len(parts) > 1 else os.path.splitext(parts[0])[0]


def check_core(name):
    own = LAYERS.get(module(name))
    if own is None:
        yield f"{name}: folder core/{module(name)} has no layer"
        return
    for kind, target, line in includes(name):
        where = f"{name}:{line}: includes {target}"
        if kind == "<" or target.startswith("soulacy/"):
            continue
        if "/" not in target:
            if module(target) not in LAYERS:
                yield f"{where}: write it with its folder"
            other = LAYERS.get(module(target), own)
        elif module(target) not in LAYERS:
            yield f"{where}: no such part of core"
            continue
        else:
            other = LAYERS[module(target)]
        if other > own:
            yield f"{where}: a higher layer"


def check_plugin(name):
    folder = "/".join(name.split("/")[:2])
    for kind, target, line in includes(name):
        path = os.path.normpath(os.path.join(os.path.dirname(name), target))
        inside = path.startswith(folder + "/") and os.path.exists(
            os.path.join(tree.TOP, path))
        if target.startswith("soulacy/") or (kind == '"' and inside):
            continue
        if kind == '"' or os.path.exists(os.path.join(tree.TOP, "core", target)):
            yield f"{name}:{line}: includes {target}: neither soulacy/*.h nor its own"


def check_public(name):
    for _, target, line in includes(name):
        if target in PUBLIC_SYSTEM:
            continue
        if not (target.startswith("soulacy/")
                and os.path.exists(os.path.join(tree.TOP, "include", target))):
            yield f"{name}:{line}: includes {target}: not for a public header"


faults = []
groups = (("core/", check_core), ("plugins/", check_plugin), ("plugin-api/template/", check_plugin),
          ("include/", check_public))
count = 0
for prefix, check in groups:
    for file in tree.files(prefix):
        count += 1
        faults += check(file)
tree.finish(faults, count)
