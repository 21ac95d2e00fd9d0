#: {"args": {"a": 1, "zz": 2}, "cause": "tool_error", "text": "BadSignature: tool() got an unexpected keyword argument 'zz'"}
def tool(a):
    pass
