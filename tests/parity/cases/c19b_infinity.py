#: {"cause": "tool_error", "text": "BadResult: the result cannot be written as JSON: NaN and Infinity are not JSON"}
def tool():
    return [1e400]
