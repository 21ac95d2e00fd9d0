#: {"args_fill": 50000000, "mem_mb": 64, "cause": "memory", "text": "stopped: memory limit of 64 MB reached"}
def tool(data):
    return len(data)
