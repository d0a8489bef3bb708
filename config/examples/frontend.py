"""frontend.py - a front end in Python on the buffer of camerad.c, by ctypes alone.

Prints the frame that is in the buffer for each line of its standard input, and ends with it. Nothing in
it knows of other programs: by daemon.conf its cudaMalloc returns the daemon's buffer.

With Numba and with CuPy the same rule holds, for their allocations are of this size, too:

    frame = numba.cuda.device_array(64 << 20, dtype=numpy.uint8)      # caches nothing
    cupy.cuda.set_allocator(None)                                     # its pool would ask for other sizes
    frame = cupy.empty(64 << 20, dtype=cupy.uint8)
"""
import ctypes
import sys

SIZE = 64 << 20
TO_HOST = 2  # cudaMemcpyDeviceToHost


def load_runtime():
    for name in ("libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    sys.exit("frontend.py: no libcudart.so; set LD_LIBRARY_PATH to the CUDA Toolkit's lib64")


cuda = load_runtime()


def check(error, call):
    if error:
        sys.exit(f"frontend.py: {call}: error {error}")


def main():
    frame = ctypes.c_void_p()
    check(cuda.cudaMalloc(ctypes.byref(frame), ctypes.c_size_t(SIZE)), "cudaMalloc")
    seen = ctypes.create_string_buffer(64)
    while True:
        check(cuda.cudaMemcpy(seen, frame, ctypes.c_size_t(len(seen)), TO_HOST), "cudaMemcpy")
        print("sees:", seen.value.decode(errors="replace"), flush=True)
        if not sys.stdin.readline():
            break
    check(cuda.cudaFree(frame), "cudaFree")


if __name__ == "__main__":
    main()
