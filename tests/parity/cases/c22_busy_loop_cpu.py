#: {"cause": "cpu", "cpu": 1, "text": "stopped: CPU limit of 1 s reached"}
def tool():
    while True:
        pass
