#: {"cause": "tool_error",
#:  "text": "Traceback (most recent call last):\n  File \"tool.py\", line 9, in tool\n    raise Odd()\nOdd: <unprintable Odd object>\n"}
class Odd(Exception):
    def __str__(self):
        raise KeyError("no")


def tool():
    raise Odd()
