#: {"cause": "tool_error", "text": "BadResult: the result cannot be written as JSON: an object of type set"}
def tool():
    return {"x": {1, 2}}
