"""numba's own IPC handles: an array of one process, opened and changed in another."""
import multiprocessing as mp
import warnings

import numpy as np
from numba import cuda
from numba.core.errors import NumbaPerformanceWarning

warnings.simplefilter("ignore", NumbaPerformanceWarning)


@cuda.jit
def double(array):
    i = cuda.grid(1)
    if i < array.size:
        array[i] *= 2


def child(handle, answer):
    try:
        with handle as array:
            double[(array.size + 255) // 256, 256](array)
            cuda.synchronize()
            answer.put(float(array.copy_to_host().sum()))
    except Exception as error:  # the parent must not wait for ever
        answer.put(repr(error))


if __name__ == "__main__":
    context = mp.get_context("spawn")
    array = cuda.to_device(np.arange(100000, dtype=np.float64))
    answer = context.Queue()
    process = context.Process(target=child, args=(array.get_ipc_handle(), answer))
    process.start()
    print("child", answer.get(timeout=60))
    process.join()
    print("parent", float(array.copy_to_host().sum()), process.exitcode)
