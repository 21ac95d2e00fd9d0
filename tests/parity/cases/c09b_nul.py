#: {"text_len": 3, "log_len": 4}
def tool():
    print("x\0y")
    return "a\0b"
