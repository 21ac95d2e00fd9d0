#: {"text": "null"}
def tool():
    pass
