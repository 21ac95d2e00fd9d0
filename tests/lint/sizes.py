#!/usr/bin/env python3
"""Functions over 60 lines and files over 700."""
import tree

FUNCTION_LINES = 60
FILE_LINES = 700

faults = []
checked = tree.files("core/", "plugins/", "plugin-api/")
for file in checked:
    text = tree.code(file)
    lines = text.count("\n")
    if lines > FILE_LINES:
        faults.append(f"{file}: {lines} lines, {FILE_LINES} allowed")
    if file.endswith(".c"):
        for name, _, _, first, last in tree.functions(text):
            if last - first + 1 > FUNCTION_LINES:
                faults.append(f"{file}:{first}: {name} has {last - first + 1} lines, "
                              f"{FUNCTION_LINES} allowed")
tree.finish(faults, len(checked))
