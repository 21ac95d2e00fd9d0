#: {"cause": "too_large", "text": "the tool's result is too large: an answer of 80000011 bytes, at most 67174400 are taken"}
def tool():
    return "y" * 80000000
