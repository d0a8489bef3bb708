/* sanitizer.c - see sanitizer.h. */
#include "sanitizer.h"

const char *__asan_default_options(void) {
    return "verify_asan_link_order=0";
}
