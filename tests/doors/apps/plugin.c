/*
 * plugin.c - a library that a program loads. What it is linked with and how it finds its functions
 * is up to the build: PLUGIN_DRIVER, PLUGIN_RUNTIME, PLUGIN_DEFAULT, PLUGIN_RUNTIME_DEFAULT,
 * PLUGIN_NEXT.
 */
#if defined(PLUGIN_DRIVER)
#define LINKED_DRIVER
#elif defined(PLUGIN_RUNTIME)
#define LINKED_RUNTIME
#endif
#if defined(PLUGIN_RUNTIME) || defined(PLUGIN_RUNTIME_DEFAULT)
#include <dlfcn.h>

#include "runtime.h"
#else
#include "driver.h"
#endif

int plugin_walk(void);

#if defined(PLUGIN_DRIVER)
int plugin_walk(void) {
    return driver_walk_linked();
}
#elif defined(PLUGIN_RUNTIME)
int plugin_walk(void) {
    (void)runtime_walk_found;
    return runtime_walk_linked();
}
#elif defined(PLUGIN_NEXT)
static void *by_next(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

int plugin_walk(void) {
    return driver_walk_found(by_next);
}
#else
static void *by_default(const char *name) {
    return dlsym(RTLD_DEFAULT, name);
}

int plugin_walk(void) {
#ifdef PLUGIN_RUNTIME_DEFAULT
    return runtime_walk_found(by_default);
#else
    return driver_walk_found(by_default);
#endif
}
#endif
