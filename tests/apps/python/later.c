/* later.c - what a library of Python 3.99 has, as far as it is looked at: "Python" that frees
 * memory twice. */
#include <cuda_runtime_api.h>
#include <stddef.h>

char _PyRuntime[1024] = "xdebugpy";
const unsigned long Py_Version = 0x036300f0;
char PyCode_Type[8], PyFrame_Type[8], PyUnicode_Type[8], PyBytes_Type[8];

int _PyEval_EvalFrameDefault(void *memory);
void Py_Initialize(void);
int PyRun_SimpleString(const char *script);

int _PyEval_EvalFrameDefault(void *memory) {
    return cudaFree(memory) == cudaSuccess;
}

void Py_Initialize(void) {
}

int PyRun_SimpleString(const char *script) {
    void *memory = NULL;
    return cudaMalloc(&memory, 4096) != cudaSuccess || !_PyEval_EvalFrameDefault(memory) ||
           _PyEval_EvalFrameDefault(memory) + _PyEval_EvalFrameDefault(memory);
}
