#: {"cause": "tool_error", "text": "BadResult: the result cannot be written as JSON: an object of type generator"}
def tool():
    yield 1
