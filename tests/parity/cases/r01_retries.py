#: {"retries": 2, "backoff_ms": 10, "cause": "tool_error", "attempts": 3, "log": "try\ntry\ntry\n",
#:  "text_has": ["ValueError: again"]}
def tool():
    print("try")
    raise ValueError("again")
