#: {"file": "/srv/agents/sales/lookup.py", "text": "/srv/agents/sales/lookup.py tool"}
def tool():
    return __file__ + " " + __name__
