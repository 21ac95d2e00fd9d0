#: {"cause": "tool_error", "text": "FunctionNotFound: the tool's source defines no function tool()"}
def other():
    pass
