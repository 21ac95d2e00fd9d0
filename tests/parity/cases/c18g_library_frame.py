#: {"needs": "json", "cause": "tool_error", "text_has": ["  File \"json/decoder.py\", line ", "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n"],
#:  "text_not": ["/usr", "/srv", "harness"]}
import json


def tool():
    return json.loads("x")
