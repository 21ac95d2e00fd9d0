#: {"cause": "tool_error", "text_has": ["[... frames left out ...]", "  File \"tool.py\", line 14, in tool\n", "RecursionError: "], "max_ms": 5000}
import sys


def even(n):
    return odd(n + 1)


def odd(n):
    return even(n + 1)


def tool():
    return even(0)
