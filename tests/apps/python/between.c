/* between.c - a library between a Python program and CUDA, or between Python and Python. */
#include <cuda_runtime_api.h>

void *PyObject_CallObject(void *callable, void *arguments); /* the interpreter's */

int free_it(void *memory);
int call_function(int (*function)(void));
void *call_object(void *callable, void *arguments);

static volatile int sink; /* no call is in tail position */

int free_it(void *memory) {
    const int code = cudaFree(memory);
    sink = code;
    return code;
}

int call_function(int (*function)(void)) {
    const int code = function();
    sink = code;
    return code;
}

/* As an extension module does. */
void *call_object(void *callable, void *arguments) {
    void *result = PyObject_CallObject(callable, arguments);
    sink = result != 0;
    return result;
}
