#: {"args": {"name": "Zoë"}, "text": "hello Zoë", "log": ""}
def tool(name, greeting="hello"):
    return "%s %s" % (greeting, name)
