#: {"text": "ok", "log": "a\ufffdb\ufffd\ufffdc\n\u00e9\ud83d\ude00|\ufffd"}
import os
import time


def tool():
    os.write(2, b"a\xffb\xc3\x28\xe2"[:4] + b"\xedc\n")
    for byte in "é😀|".encode() + b"\xf0":
        os.write(2, bytes([byte]))
        time.sleep(0.01)
    return "ok"
