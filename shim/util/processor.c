#include "processor.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <stdatomic.h>
#include <stdint.h>

/* Whether the system saves the wide registers: bits 1 and 2 of XCR0. */
static bool are_registers_saved(void) {
    uint32_t low, high, a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & 6) == 6;
}

static bool processor_ask_avx2(void) {
    uint32_t a, b, c, d;
    return are_registers_saved() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}

bool gps_processor_has_avx2(void) {
    enum { NOT_ASKED, NO, YES };
    static _Atomic int answer;
    if (answer == NOT_ASKED)
        answer = processor_ask_avx2() ? YES : NO;
    return answer == YES;
}
#else
bool gps_processor_has_avx2(void) {
    return false;
}
#endif
