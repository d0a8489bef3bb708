/* cuda_lookup.h - which addresses are handed out for hooked functions. Any thread, any time. */
#pragma once

#include <stdbool.h>

/* What to hand out for an address that a real resolver returned: our wrapper when it is the address
 * of a hooked function of libcuda (a WRITE row: where a rule of the program's asks for it), else
 * the address itself. Attaches when the address lies in a libcuda. `driver` is another one where a
 * library behind us answers the look-up with a function of its own: what is without that. */
void *gps_lookup_substitute(void *address, const void *driver);

/* Whether an address is one of our own exported functions, of the driver's names or the runtime's.
 */
bool gps_lookup_is_ours(const void *address);

/* Whether it is one of the runtime's names. */
bool gps_lookup_is_runtime(const void *address);
