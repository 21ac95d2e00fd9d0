#: {"cause": "tool_error", "text": "Exception: an exception that cannot be described"}
class Meta(type):
    def __getattribute__(cls, name):
        raise RuntimeError("no")


class Odd(Exception, metaclass=Meta):
    def __str__(self):
        raise ValueError


def tool():
    raise Odd()
