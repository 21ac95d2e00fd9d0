#: {"function": "run", "args": {"x": 2, "y": 3}, "text": "5"}
def run(x, y):
    return x + y
