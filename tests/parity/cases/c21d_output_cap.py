#: {"max_output": 200, "text_has": ["ééé", "\n[... ", " bytes left out ...]\n", "zz"], "text_not": ["\ufffd"]}
def tool():
    return "é" * 3000 + "z" * 30
