#: {"cause": "memory", "mem_mb": 512,
#:  "text": "stopped: memory limit of 512 MB reached\nTraceback (most recent call last):\n  File \"tool.py\", line 5, in tool\n    return len([0] * (10 * 1024 ** 3))\nMemoryError\n"}

def tool():
    return len([0] * (10 * 1024 ** 3))
