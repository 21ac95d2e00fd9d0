# The harness: one Python program, the same on every backend. The bootstrap has read this
# text from stdin (buffered reader `b`) and executes it. Comes in: one request frame on
# stdin. Goes out: one answer frame on what was fd 1, log text on fd 2. It never runs a
# second call and never returns: the process ends with the answer.
#
# Python 3.7 and newer, standard library only, also where python3-minimal lacks json. The
# path of a call that goes well imports nothing but builtin modules and _json: each import
# and each line compiled here is paid on every cold call. What is needed when something
# goes wrong is in harness_cold.py, which the build puts into COLD as text; it is compiled
# on its first use. The build drops comments and blank lines (never inside a text).
import posix, sys

COLD = "@COLD@"
G = globals()


def cold():
    # Everything that is defined there becomes part of this namespace.
    if COLD:
        text = COLD
        G["COLD"] = ""
        exec(compile(text, "<harness>", "exec"), G)


def write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[posix.write(fd, view):]


def frame(kind, fields):
    parts = [b"SYF1", kind, CALL, b""]
    total = 0
    for tag, value in fields:
        parts.append(bytes((tag,)) + len(value).to_bytes(4, "little"))
        parts.append(value)
        total += 5 + len(value)
    parts[3] = total.to_bytes(4, "little")
    return parts


def answer(kind, fields):
    # A handler that tool code set must not break into what follows.
    if "signal" in sys.modules:
        signal = sys.modules["_signal"]
        signal.pthread_sigmask(signal.SIG_BLOCK, (*range(1, 32), *range(35, 65)))
    # What tool code left in the streams comes before the answer, and nothing after it.
    for stream in (sys.stdout, sys.stderr, STDOUT, STDERR):
        try:
            stream.flush()
        except BaseException:
            pass
    # A child that the tool forked came back here: it has no answer to give.
    if posix.getpid() != PID:
        posix._exit(0 if kind == b"R" else int(dict(fields).get(7, b"1")))
    try:
        try:
            parts = frame(kind, fields)
        except OverflowError:
            parts = frame(b"E", ((3, b"BadResult"), (4, b"the result is over 4 GB")))
        # Small ones in a single write; a large value is not copied again.
        if sum(map(len, parts)) < 60000:
            parts = (b"".join(parts),)
        for part in parts:
            write_all(OUT, part)
    except OSError:
        pass  # the channel was closed by the tool: the core says so
    posix._exit(0)


class Loader:
    # Gives tracebacks of the tool's own code their source lines, when somebody asks.
    def get_source(self, name):
        return SOURCE.decode("utf-8", "replace")


class SiteFinder:
    # Last on sys.meta_path: the first top-level module that cannot be found brings in
    # site-packages, which the interpreter was started without.
    def find_spec(self, name, path=None, target=None):
        if path is not None or name in OPTIONAL:
            return None
        if name in getattr(sys, "stdlib_module_names", ()):
            return None
        sys.meta_path.remove(self)
        import site
        site.main()
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                return spec
        return None


# What the standard library itself tries to import and does without.
OPTIONAL = frozenset((
    "msvcrt", "_winapi", "winreg", "_winreg", "nt", "_overlapped", "org", "java",
    "vms_lib", "_scproxy", "sitecustomize", "usercustomize"))


def decode(text):
    try:
        from _json import make_scanner
    except ImportError:
        cold()
        return G["plain_decode"](text)

    class Context:
        strict = True
        object_hook = object_pairs_hook = array_hook = None
        parse_float = float
        parse_int = int
        parse_constant = None
        memo = {}
    i = 0
    while text[i] in " \t\r\n":
        i += 1
    return make_scanner(Context)(text, i)[0]


def unencodable(value):
    raise TypeError("an object of type %s" % type(value).__name__)


def encode(value):
    try:
        from _json import make_encoder, encode_basestring_ascii
    except ImportError:
        cold()
        return G["plain_encode"](value)
    encoder = make_encoder({}, unencodable, encode_basestring_ascii, None, ": ", ", ",
                           False, False, False)
    return "".join(encoder(value, 0))


def takes_one_dict(function):
    # run(inputs) with exactly one positional parameter gets the arguments as one dict.
    code = getattr(function, "__code__", None)
    return (code is not None and code.co_argcount == 1
            and code.co_kwonlyargcount == 0 and not code.co_flags & 0x0c)


def request():
    global CALL
    head = b.read(17)
    if len(head) != 17 or head[:5] != b"SYF1Q":
        posix._exit(0)  # end of file: the call was never made
    CALL = head[5:13]
    size = int.from_bytes(head[13:], "little")
    data = b.read(size)
    if len(data) != size:
        posix._exit(0)
    view = memoryview(data)
    fields = {}
    env = []
    i = 0
    while i < size:
        end = i + 5 + int.from_bytes(view[i + 1:i + 5], "little")
        if view[i] == 5:
            env.append(bytes(view[i + 5:end]))
        elif view[i] == 4:
            fields[4] = view[i + 5:end]  # arguments may be large: no copy
        else:
            fields[view[i]] = bytes(view[i + 5:end])
        i = end
    return fields, env


def set_env(pairs):
    # Before tool code runs. os may not be imported yet: then it starts from this dict.
    os = sys.modules.get("os")
    for pair in pairs:
        name, _, value = pair.partition(b"=")
        if os is not None:
            os.environb[name] = value
        else:
            posix.environ[name] = value
            posix.putenv(name, value)


def set_limits(text):
    # A local supervisor has set them already, which its own table shows without the
    # price of importing `resource`.
    wanted = dict(pair.split("=") for pair in text.split())
    try:
        fd = posix.open("/proc/self/limits", posix.O_RDONLY)
        try:
            table = posix.read(fd, 8192)
        finally:
            posix.close(fd)
        for name, row in (("cpu", b"Max cpu time "), ("as", b"Max address space "),
                          ("nofile", b"Max open files "), ("fsize", b"Max file size "),
                          ("nproc", b"Max processes ")):
            if name in wanted:
                soft = table[table.index(row) + 26:].split(None, 1)[0]
                if soft == b"unlimited" or int(soft) > int(wanted[name]):
                    break
                del wanted[name]
    except (OSError, ValueError):
        pass
    if wanted:
        cold()
        G["limit_self"](wanted)


def call(fields):
    name = G["TOOL_FILE"] = str(fields[2], "utf-8")
    wanted = str(fields[3], "utf-8")
    tool = type(sys)("tool")
    tool.__file__ = name
    tool.__loader__ = Loader()
    sys.modules["tool"] = tool
    sys.argv = [name]
    exec(compile(SOURCE, name, "exec", dont_inherit=True), tool.__dict__)
    function = getattr(tool, wanted, None)
    code = getattr(function, "__code__", None)
    if not callable(function) or code is not None and code.co_flags & 0x280:
        cold()
        G["refuse_function"](wanted, function)
    # Integers of any length travel unchanged; the tool itself keeps Python's own limit.
    digits = getattr(sys, "get_int_max_str_digits", int)()
    if digits:
        sys.set_int_max_str_digits(0)
    arguments = decode(str(fields.pop(4), "utf-8"))
    if digits:
        sys.set_int_max_str_digits(digits)
    depth = sys.getrecursionlimit()
    if wanted == "run" and takes_one_dict(function):
        result = function(arguments)
    else:
        G["CALLING"] = wanted
        result = function(**arguments)
        G["CALLING"] = ""
    if isinstance(result, str):
        return b"s", str.encode(result, "utf-8", "backslashreplace")
    if digits:
        sys.set_int_max_str_digits(0)
    sys.setrecursionlimit(depth)
    G["ENCODING"] = True
    return b"j", encode(result).encode("ascii")


def out_of_memory():
    if posix.getpid() == PID:
        write_all(OUT, b"".join(frame(b"E", ((6, b"memory"), (3, b"MemoryError")))))
    posix._exit(0)


def main():
    global SOURCE
    write_all(OUT, b"SYF1H" + bytes(12))  # up, and waiting for the call
    try:
        fields, env = request()
    except MemoryError:
        out_of_memory()
    # Tool code that reads standard input is at its end at once.
    reading, writing = posix.pipe()
    posix.close(writing)
    posix.dup2(reading, 0)
    posix.close(reading)
    SOURCE = fields[1]
    set_env(env)
    if 6 in fields:
        set_limits(str(fields.pop(6), "ascii"))
    try:
        kind, text = call(fields)
    except BaseException as e:
        try:
            cold()
            fields = G["describe"](e)
        except MemoryError:
            e.__traceback__ = None  # gives back what the tool's frames hold
            out_of_memory()
        except BaseException:
            fields = ((3, b"Exception"), (4, b"an exception that cannot be described"))
        answer(b"E", fields)
    answer(b"R", ((2, kind), (1, text)))


# First of all: what is written to fd 1 from here on, by whomever, is log text.
OUT = posix.dup(1)
posix.dup2(2, 1)
PID = posix.getpid()
CALL = bytes(8)
SOURCE = b""
TOOL_FILE = ""
CALLING = ""
ENCODING = False
STDOUT = sys.stdout
STDERR = sys.stderr
STDOUT.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
STDERR.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
sys.modules["builtins"].exit = sys.modules["builtins"].quit = sys.exit
sys.meta_path.append(SiteFinder())
main()
