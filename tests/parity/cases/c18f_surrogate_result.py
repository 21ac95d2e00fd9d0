#: {"text": "a\\ud800b"}
def tool():
    return "a\ud800b"
