#: {"cause": "tool_error", "text": "BadResult: the result cannot be written as JSON: an object of type bytes"}
def tool():
    return b"raw"
