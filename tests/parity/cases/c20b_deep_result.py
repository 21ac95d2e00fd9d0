#: {"cause": "tool_error", "text": "BadResult: the result is nested too deeply to be written as JSON"}
def tool():
    x = []
    for _ in range(100000):
        x = [x]
    return x
