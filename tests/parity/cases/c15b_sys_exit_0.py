#: {"cause": "exit", "detail": 0, "text": "the tool exited with code 0 before it gave a result"}
def tool():
    exit()
