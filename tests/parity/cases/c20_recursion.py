#: {"cause": "tool_error", "text_has": ["RecursionError: maximum recursion depth exceeded", "more times]"], "max_ms": 5000}
def tool(n=0):
    return tool(n + 1)
