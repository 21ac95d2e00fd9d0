#: {"cause": "tool_error", "text": "FunctionNotFound: tool is not a function but an object of type int"}
tool = 3
