# The part of the harness that is compiled only when it is needed: error reports, limits
# that nobody set before, and a JSON codec for interpreters without one. Executed in the
# harness's own namespace.

TRACE_MAX = 8192
MESSAGE_MAX = 4096
FRAMES_MAX = 60


class Refused(Exception):
    # A fault in how the tool is written, told by its own name instead of a traceback.
    def __init__(self, kind, message):
        self.kind = kind
        self.message = message


def refuse_function(wanted, function):
    if function is None:
        raise Refused("FunctionNotFound",
                      "the tool's source defines no function %s()" % wanted)
    if not callable(function):
        raise Refused("FunctionNotFound", "%s is not a function but an object of type %s"
                      % (wanted, type(function).__name__))
    raise Refused("AsyncFunction", "%s() is an async function; a tool is a plain function"
                  " (it may call asyncio.run itself)" % wanted)


def limit_self(wanted):
    try:
        import resource
    except ImportError:
        STDERR.write("warning: no module 'resource' here, limits not set: %s\n"
                     % ", ".join(sorted(wanted)))
        return
    # Files last: whatever is opened for the others still can be.
    for name in ("cpu", "as", "fsize", "nproc", "nofile"):
        if name not in wanted:
            continue
        soft = int(wanted[name])
        number = getattr(resource, "RLIMIT_" + name.upper())
        try:
            ceiling = resource.getrlimit(number)[1]
            # One second more for CPU, so that SIGXCPU comes before SIGKILL.
            hard = soft + 1 if name == "cpu" else soft
            if ceiling != resource.RLIM_INFINITY and ceiling < hard:
                hard = ceiling
            resource.setrlimit(number, (min(soft, hard), hard))
        except (OSError, ValueError) as e:
            STDERR.write("warning: limit %s not set: %s\n" % (name, e))


def class_name(kind):
    try:
        name = kind.__qualname__
        if kind.__module__ not in ("builtins", "__main__", "tool"):
            name = "%s.%s" % (kind.__module__, name)
        return str(name)
    except Exception:
        return "Exception"


def message_of(e):
    try:
        text = str(e)
    except MemoryError:
        raise
    except BaseException:
        return "<unprintable %s object>" % type(e).__name__
    if len(text) > MESSAGE_MAX:
        text = text[:MESSAGE_MAX] + "..."
    return text


def shown_file(path):
    # No folder of the host: the tool's own file by its name, others below sys.path.
    if path == TOOL_FILE or not path.startswith("/"):
        return path.rsplit("/", 1)[-1]
    best = ""
    for entry in sys.path:
        if isinstance(entry, str) and entry and path.startswith(entry.rstrip("/") + "/"):
            if len(entry) > len(best):
                best = entry
    return path[len(best.rstrip("/")) + 1:] if best else path.rsplit("/", 1)[-1]


def tool_line(path, number):
    if path != TOOL_FILE or not number:
        return ""
    if "LINES" not in G:
        G["LINES"] = SOURCE.decode("utf-8", "replace").splitlines()
    return LINES[number - 1].strip() if number <= len(LINES) else ""


def frames_text(tb):
    out = []
    last = None
    repeats = 0
    left_out = False
    while tb is not None:
        frame = tb.tb_frame
        code = frame.f_code
        path = code.co_filename
        if frame.f_globals is not G and not path.startswith("<frozen importlib"):
            key = (path, tb.tb_lineno, code.co_name)
            repeats = repeats + 1 if key == last else 0
            last = key
            if repeats < 3:
                out.append('  File "%s", line %d, in %s\n'
                           % (shown_file(path), tb.tb_lineno, code.co_name))
                line = tool_line(path, tb.tb_lineno)
                if line:
                    out[-1] += "    %s\n" % line
            else:
                note = "  [the line before was repeated %d more times]\n" % (repeats - 2)
                if repeats == 3:
                    out.append(note)
                else:
                    out[-1] = note
        if len(out) > FRAMES_MAX:
            # Never all of a very deep stack: its ends are what is read.
            left_out = True
            del out[FRAMES_MAX // 3:FRAMES_MAX // 2]
        tb = tb.tb_next
    if left_out:
        out.insert(FRAMES_MAX // 3, "  [... frames left out ...]\n")
    return "".join(out)


def final_line(e):
    text = message_of(e)
    name = class_name(type(e))
    if isinstance(e, SyntaxError) and type(e.msg) is str:
        where = ""
        if type(e.filename) is str and type(e.lineno) is int:
            where = '  File "%s", line %d\n' % (shown_file(e.filename), e.lineno)
            line = tool_line(e.filename, e.lineno)
            if line:
                where += "    %s\n" % line
        return "%s%s: %s\n" % (where, name, e.msg[:MESSAGE_MAX])
    out = "%s: %s\n" % (name, text) if text else name + "\n"
    for note in getattr(e, "__notes__", None) or ():
        if type(note) is str:
            out += note[:MESSAGE_MAX] + "\n"
    inner = getattr(e, "exceptions", None)
    if type(inner) is tuple:
        for i, part in enumerate(inner[:16]):
            out += "  %d. %s: %s\n" % (i + 1, class_name(type(part)), message_of(part))
    return out


def traceback_text(e):
    chain = []
    seen = set()
    link = ""
    while e is not None and id(e) not in seen and len(chain) < 16:
        seen.add(id(e))
        frames = frames_text(e.__traceback__)
        if frames:
            frames = "Traceback (most recent call last):\n" + frames
        chain.append(link)
        chain.append(frames + final_line(e))
        if e.__cause__ is not None:
            e = e.__cause__
            link = ("\nThe above exception was the direct cause of the following"
                    " exception:\n\n")
        elif e.__context__ is not None and not e.__suppress_context__:
            e = e.__context__
            link = ("\nDuring handling of the above exception, another exception"
                    " occurred:\n\n")
        else:
            e = None
    chain.reverse()
    # Reversed, each link stands behind the exception it introduces: shift by one.
    return "".join(chain)


def safe_bytes(text, limit):
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= limit:
        return data
    # The end says most; the beginning says where it came from.
    head = data[:limit // 4].decode("utf-8", "ignore").encode()
    tail = data[len(data) - limit * 3 // 4 + 32:].decode("utf-8", "ignore").encode()
    return head + b"\n  [... cut ...]\n" + tail


def bad_result(e):
    name = type(e).__name__
    if name == "RecursionError":
        return "the result is nested too deeply to be written as JSON"
    if name == "TypeError":
        return "the result cannot be written as JSON: %s" % message_of(e)
    if message_of(e).startswith("Circular"):
        return "the result cannot be written as JSON: it contains itself"
    return "the result cannot be written as JSON: NaN and Infinity are not JSON"


def bad_signature(e):
    # Raised by the call itself and not inside the function: there is no frame of it.
    tb = e.__traceback__
    while tb is not None:
        if tb.tb_frame.f_globals is not G:
            return False
        tb = tb.tb_next
    return True


def plain(kind, message):
    return ((3, kind.encode()), (4, safe_bytes(message, MESSAGE_MAX)))


def exit_fields(e):
    code = e.code
    if code is None:
        code = 0
    if isinstance(code, int):
        return ((6, b"exit"), (3, b"SystemExit"), (7, b"%d" % (int(code) & 255)),
                (4, b""))
    return ((6, b"exit"), (3, b"SystemExit"), (7, b"1"),
            (4, safe_bytes(message_of(e), MESSAGE_MAX)))


def describe(e):
    # A forked child of the tool has nobody to tell but the log.
    if posix.getpid() != PID and not isinstance(e, SystemExit):
        STDERR.write(traceback_text(e))
        return ()
    # Tool code may have left hardly any stack.
    if isinstance(e, RecursionError):
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000))
    if isinstance(e, SystemExit):
        return exit_fields(e)
    if isinstance(e, Refused):
        return plain(e.kind, e.message)
    if ENCODING and isinstance(e, (TypeError, ValueError, RecursionError, OverflowError)):
        if bad_signature(e):
            return plain("BadResult", bad_result(e))
    if CALLING and isinstance(e, TypeError) and bad_signature(e):
        return plain("BadSignature", message_of(e))
    fields = [(3, safe_bytes(class_name(type(e)), 256)),
              (4, safe_bytes(message_of(e), MESSAGE_MAX)),
              (5, safe_bytes(traceback_text(e), TRACE_MAX))]
    if isinstance(e, MemoryError):
        fields.insert(0, (6, b"memory"))
        if fields[3][1].startswith(b"MemoryError"):
            del fields[3]  # no frame of the tool: it says nothing more
    return fields


def decode_string(text, i):
    # text[i] is the character after the opening quote.
    parts = []
    while True:
        quote = text.index('"', i)
        slash = text.find("\\", i, quote)
        if slash < 0:
            parts.append(text[i:quote])
            return "".join(parts), quote + 1
        parts.append(text[i:slash])
        kind = text[slash + 1]
        i = slash + 2
        if kind == "u":
            unit = int(text[i:i + 4], 16)
            i += 4
            if 0xd800 <= unit < 0xdc00 and text[i:i + 2] == "\\u":
                low = int(text[i + 2:i + 6], 16)
                if 0xdc00 <= low < 0xe000:
                    unit = 0x10000 + ((unit - 0xd800) << 10) + low - 0xdc00
                    i += 6
            parts.append(chr(unit))
        else:
            at = "bfnrt".find(kind)
            parts.append(kind if at < 0 else "\b\f\n\r\t"[at])


def skip_blank(text, i):
    while text[i] in " \t\r\n":
        i += 1
    return i


def decode_value(text, i):
    # The text was checked by the core: it is strict JSON, at most 64 deep.
    i = skip_blank(text, i)
    c = text[i]
    if c == '"':
        return decode_string(text, i + 1)
    if c in "{[":
        items = {} if c == "{" else []
        end = "}" if c == "{" else "]"
        i = skip_blank(text, i + 1)
        while text[i] != end:
            if text[i] == ",":
                i = skip_blank(text, i + 1)
            if c == "{":
                key, i = decode_string(text, i + 1)
                i = skip_blank(text, i) + 1
                items[key], i = decode_value(text, i)
            else:
                value, i = decode_value(text, i)
                items.append(value)
            i = skip_blank(text, i)
        return items, i + 1
    for word, value in (("true", True), ("false", False), ("null", None)):
        if text.startswith(word, i):
            return value, i + len(word)
    end = i
    while end < len(text) and text[end] in "+-.0123456789eE":
        end += 1
    word = text[i:end]
    return (int(word) if word.lstrip("-").isdigit() else float(word)), end


def plain_decode(text):
    try:
        from json import loads
    except ImportError:
        return decode_value(text, 0)[0]
    return loads(text)


def encode_char(c):
    at = '"\\\n\r\t\f\b'.find(c)
    if at >= 0:
        return "\\" + '"\\nrtfb'[at]
    if " " <= c <= "~":
        return c
    n = ord(c)
    if n < 0x10000:
        return "\\u%04x" % n
    n -= 0x10000
    return "\\u%04x\\u%04x" % (0xd800 | n >> 10, 0xdc00 | n & 0x3ff)


def encode_string(text):
    return '"' + "".join(map(encode_char, text)) + '"'


def encode_float(value):
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("Out of range")
    return float.__repr__(value)


def encode_key(key):
    if isinstance(key, str):
        return encode_string(key)
    if key is None or isinstance(key, (bool, int, float)):
        return '"' + encode_value(key, None) + '"'
    raise TypeError("keys must be str, int, float, bool or None, not "
                    + type(key).__name__)


def encode_value(value, open_ids):
    if isinstance(value, str):
        return encode_string(value)
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return encode_float(value)
    if not isinstance(value, (dict, list, tuple)):
        unencodable(value)
    if id(value) in open_ids:
        raise ValueError("Circular reference detected")
    open_ids.add(id(value))
    if isinstance(value, dict):
        text = "{" + ", ".join([encode_key(k) + ": " + encode_value(v, open_ids)
                                for k, v in value.items()]) + "}"
    else:
        text = "[" + ", ".join([encode_value(v, open_ids) for v in value]) + "]"
    open_ids.discard(id(value))
    return text


def plain_encode(value):
    try:
        from json import dumps
    except ImportError:
        return encode_value(value, set())
    return dumps(value, allow_nan=False, default=unencodable)
