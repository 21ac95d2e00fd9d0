#: {"function": "run", "args": {"x": 1, "y": [true, null, 1.5]}, "text": "{\"x\": 1, \"y\": [true, null, 1.5]}"}
def run(inputs):
    return inputs
