/* nvml.h - NVIDIA's management library, which tells of GPUs without a context. */
#pragma once

/* The library, started, to find functions in; NULL: it is not there. Once for the process, which
 * never closes it. One thread. */
void *nvml_open(void);
