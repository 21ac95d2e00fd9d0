#: {"mem_mb": 512, "max_output": 67108864, "text_len": 50000000, "max_ms": 20000}
def tool():
    return "y" * 50000000
