#: {"text_len": 5001}
def tool():
    return 10 ** 5000
