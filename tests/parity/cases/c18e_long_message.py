#: {"cause": "tool_error", "text_has": ["ValueError: mmmm", "..."], "max_ms": 5000}
def tool():
    raise ValueError("m" * 50000000)
