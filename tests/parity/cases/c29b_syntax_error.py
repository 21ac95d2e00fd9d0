#: {"cause": "tool_error", "text_has": ["  File \"tool.py\", line 2\n    def tool(:\nSyntaxError: "], "text_not": ["/srv", "harness"]}
def tool(:
    pass
