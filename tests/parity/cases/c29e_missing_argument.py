#: {"args": {"a": 1}, "cause": "tool_error", "text": "BadSignature: tool() missing 1 required positional argument: 'b'"}
def tool(a, b):
    pass
