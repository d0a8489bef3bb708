/* no_symbol.c - stands for gps_process_symbol in find_object.c: the linker is an old one. */
#include <stddef.h>

void *gps_no_symbol(const char *name);

void *gps_no_symbol(const char *name) {
    (void)name;
    return NULL;
}
