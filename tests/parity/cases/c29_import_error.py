#: {"cause": "tool_error",
#:  "text": "Traceback (most recent call last):\n  File \"tool.py\", line 3, in <module>\n    import no_such_module_x\nModuleNotFoundError: No module named 'no_such_module_x'\n"}
import no_such_module_x
