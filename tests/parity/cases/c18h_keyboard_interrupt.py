#: {"cause": "tool_error",
#:  "text": "Traceback (most recent call last):\n  File \"tool.py\", line 4, in tool\n    raise KeyboardInterrupt\nKeyboardInterrupt\n"}
def tool():
    raise KeyboardInterrupt
