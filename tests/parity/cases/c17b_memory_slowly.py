#: {"cause": "memory", "mem_mb": 256, "text_has": ["stopped: memory limit of 256 MB reached"]}
def tool():
    keep = []
    while True:
        keep.append(" " * 1000)
