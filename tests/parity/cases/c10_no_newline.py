#: {"text": "ok", "log": "prompt> "}
def tool():
    print("prompt> ", end="")
    return "ok"
