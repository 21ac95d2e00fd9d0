#: {"cause": "exit", "detail": 1, "text": "the tool exited with code 1 before it gave a result: no such customer"}
def tool():
    raise SystemExit("no such customer")
