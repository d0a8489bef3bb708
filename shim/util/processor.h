/* processor.h - what the processor can do. */
#pragma once

#include <stdbool.h>

/* In a loop that waits for another thread: that may be on the same core. */
static inline void gps_processor_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* False on other processors than x86-64. Asked when first needed: a virtual machine answers slowly.
 */
bool gps_has_avx2(void);
