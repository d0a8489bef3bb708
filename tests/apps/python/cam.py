"""cam.py: frees memory twice in many places, and notes each time where it stands.

The environment says where to: a line of the file EXPECTED has what Python itself says of the stack, innermost
first; "between" is the number of its frames that are inside of a function of the library BETWEEN.
"""
import ctypes
import json
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = open(os.environ["EXPECTED"], "a", encoding="utf-8")
BETWEEN = os.environ["BETWEEN"]
cuda = ctypes.CDLL("libcudart.so")
library = ctypes.CDLL(BETWEEN)
holding_lock = ctypes.PyDLL(BETWEEN)
holding_lock.call_object.restype = ctypes.py_object
holding_lock.call_object.argtypes = [ctypes.py_object, ctypes.c_void_p]
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int)


def note(case, between=None):
    frame, stack = sys._getframe(1), []
    while frame:
        stack.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
        frame = frame.f_back
    line = {"case": case, "stack": stack[:16], "between": between}
    EXPECTED.write(json.dumps(line, ensure_ascii=False) + "\n")
    EXPECTED.flush()


def freed():
    memory = ctypes.c_void_p()
    cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096))
    cuda.cudaFree(memory)
    return memory


def plain():
    note("plain"), cuda.cudaFree(freed())
    note("the next line"), cuda.cudaFree(freed())


def keywords(*arguments, **named):
    note("arguments in a dict"), cuda.cudaFree(*arguments)


def steps():
    yield 1
    note("generator"), cuda.cudaFree(freed())
    yield 2


def delegating():
    yield from steps()


class Camera:
    def __init__(self):
        self.open = True

    def stop(self):
        return [(note("comprehension"), cuda.cudaFree(freed())) for _ in range(1)]

    def __del__(self):
        note("finalizer"), cuda.cudaFree(freed())

    @property
    def state(self):
        note("property"), cuda.cudaFree(freed())

    def __exit__(self, *_):
        note("while an exception is on its way"), cuda.cudaFree(freed())

    def __enter__(self):
        return self


async def coroutine():
    note("coroutine"), cuda.cudaFree(freed())


async def awaiting():
    await coroutine()


def deep(levels):
    if levels:
        return deep(levels - 1)
    note("deep"), cuda.cudaFree(freed())


def in_c():
    note("in C", 0), library.free_it(freed())


def called_from_c():
    note("called from C", 1), cuda.cudaFree(freed())
    return 0


def called_by_extension():
    note("called by an extension", 1), cuda.cudaFree(freed())


def raises_and_is_left():
    camera = Camera()
    raise ValueError


def in_a_thread():
    note("thread"), cuda.cudaFree(freed())


def ten_lines():
    note("a call of several lines"), cuda.cudaFree(
        freed())


def run_text(text, name):
    exec(compile(text, name, "exec"), {"note": note, "cuda": cuda, "freed": freed})


def main():
    plain()
    keywords(freed(), **{"a": 1})
    for _ in delegating():
        pass
    camera = Camera()
    camera.stop()
    camera.state
    del camera
    try:
        with Camera():
            raise ValueError
    except ValueError:
        pass
    try:
        raises_and_is_left()
    except ValueError:
        pass
    try:
        awaiting().send(None)
    except StopIteration:
        pass
    deep(100)
    in_c()
    callback = FUNCTION(called_from_c)
    library.call_function(callback)
    holding_lock.call_object(called_by_extension, None)
    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    list(map(lambda _: (note("lambda in map"), cuda.cudaFree(freed())), [1]))
    sorted([1], key=lambda _: (note("lambda in sorted"), cuda.cudaFree(freed()))[1])
    ten_lines()
    lines = "\n" * 70000
    run_text(lines + "def far():\n  note('a line far down'), cuda.cudaFree(freed())\nfar()", "<text>")
    run_text("\n" * 300 + "note('a gap in the table'), cuda.cudaFree(freed())", "<gap>")
    run_text("def schlie\u00dfe(): note('Latin-1'), cuda.cudaFree(freed())\nschlie\u00dfe()", "k\u00e4m.py")
    run_text("def \u0437\u0430\u043a\u0440\u044b\u0442\u044c(): note('Cyrillic'), cuda.cudaFree(freed())\n"
             "\u0437\u0430\u043a\u0440\u044b\u0442\u044c()", "/\u043a\u0430\u043c.py")
    run_text("note('beyond 16 bits'), cuda.cudaFree(freed())", "/\U0001d4b8/\U00010400.py")
    run_text("note('a control character'), cuda.cudaFree(freed())", "/a\x1b[31m\"b.py")
    run_text("def " + "f" * 200 + "(): note('long names'), cuda.cudaFree(freed())\n" + "f" * 200 + "()",
             "/" + "d\u00e4" * 200 + "/last.py")


main()
