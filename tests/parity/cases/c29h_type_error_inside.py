#: {"cause": "tool_error",
#:  "text": "Traceback (most recent call last):\n  File \"tool.py\", line 4, in tool\n    return len(5)\nTypeError: object of type 'int' has no len()\n"}
def tool():
    return len(5)
