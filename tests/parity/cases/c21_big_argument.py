#: {"args_fill": 50000000, "mem_mb": 512, "text": "50000000", "max_ms": 20000}
def tool(data):
    return len(data)
