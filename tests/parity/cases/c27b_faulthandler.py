#: {"text": "ok", "log_has": ["Current thread"]}
import faulthandler


def tool():
    faulthandler.enable()
    faulthandler.dump_traceback()
    return "ok"
