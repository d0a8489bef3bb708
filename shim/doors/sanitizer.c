/*
 * sanitizer.c - lets a program start that has AddressSanitizer as a library, as gcc builds it.
 *
 * That library takes calls of malloc and the like, and ends a process in which another library
 * comes first, as a preloaded one does. We define no such function, so the check is turned off. The
 * variable ASAN_OPTIONS could turn it off, but scripts set it themselves. Were ASan preloaded, too,
 * each child would be searched for leaks.
 */
/* ASan asks for the defaults of its options; the program's own function of this name comes first,
 * and ASAN_OPTIONS is read after it. */
__attribute__((visibility("default"))) const char *__asan_default_options(void) {
    return "verify_asan_link_order=0";
}
