#: {"cause": "tool_error", "text": "BadResult: the result cannot be written as JSON: it contains itself"}
def tool():
    x = []
    x.append(x)
    return x
