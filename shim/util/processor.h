/* processor.h - features of the processor. */
#pragma once

#include <stdbool.h>

/* For a loop that waits for another thread, which may run on the same core. */
static inline void gps_processor_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Whether the processor has AVX2; false on other processors than x86-64. Executes cpuid only at the
 * first call, because that is slow in a virtual machine. */
bool gps_processor_has_avx2(void);
