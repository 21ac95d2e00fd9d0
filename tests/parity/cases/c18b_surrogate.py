#: {"cause": "tool_error",
#:  "text": "Traceback (most recent call last):\n  File \"tool.py\", line 4, in tool\n    raise ValueError(\"a\\ud800b\")\nValueError: a\\ud800b\n"}
def tool():
    raise ValueError("a\ud800b")
