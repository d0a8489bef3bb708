"""CuPy through the runtime API: memory handles between processes."""
import multiprocessing as mp

import cupy


def child(handle, answer):
    pointer = cupy.cuda.runtime.ipcOpenMemHandle(handle)
    memory = cupy.cuda.UnownedMemory(pointer, 4096, None)
    array = cupy.ndarray((512,), dtype=cupy.float64,
                         memptr=cupy.cuda.MemoryPointer(memory, 0))
    array += 1
    cupy.cuda.runtime.deviceSynchronize()
    answer.put(float(array.sum()))
    cupy.cuda.runtime.ipcCloseMemHandle(pointer)


if __name__ == "__main__":
    context = mp.get_context("spawn")
    pointer = cupy.cuda.runtime.malloc(4096)
    memory = cupy.cuda.UnownedMemory(pointer, 4096, None)
    array = cupy.ndarray((512,), dtype=cupy.float64, memptr=cupy.cuda.MemoryPointer(memory, 0))
    array[:] = 1
    cupy.cuda.runtime.deviceSynchronize()
    answer = context.Queue()
    process = context.Process(target=child,
                              args=(cupy.cuda.runtime.ipcGetMemHandle(pointer), answer))
    process.start()
    print("child", answer.get(timeout=60))
    process.join()
    print("parent", float(array.sum()), process.exitcode)
    cupy.cuda.runtime.free(pointer)
