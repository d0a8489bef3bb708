/* processor.h - what the processor can do. */
#pragma once

#include <stdbool.h>

/* False on other processors than x86-64. Asked when first needed: a virtual machine answers slowly.
 */
bool gps_has_avx2(void);
