#: {"cause": "tool_error",
#:  "text": "Traceback (most recent call last):\n  File \"tool.py\", line 5, in tool\n    {}[\"k\"]\nKeyError: 'k'\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"tool.py\", line 7, in tool\n    raise RuntimeError(\"outer\") from e\nRuntimeError: outer\n"}
def tool():
    try:
        {}["k"]
    except KeyError as e:
        raise RuntimeError("outer") from e
