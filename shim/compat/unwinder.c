/*
 * unwinder.c - functions of libpthread that the library's own copy of libgcc's unwinder needs,
 * which was a library of its own before glibc 2.34, and is not in every program.
 *
 * libgcc takes the first for a sign that there are threads. By the second it fills a table before a
 * walk. A thread that fills it again does no harm; one that walks by a half of it aborts.
 */
#include <errno.h>
#include <pthread.h>

int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *));

int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
    (void)key;
    (void)destructor;
    return ENOSYS;
}

/* Does not wait for another thread: each one that comes before the first is done calls `fn` itself.
 * The release store after `fn` pairs with the acquire load here. */
int pthread_once(pthread_once_t *once, void (*fn)(void)) {
    if (!__atomic_load_n(once, __ATOMIC_ACQUIRE)) {
        fn();
        __atomic_store_n(once, 1, __ATOMIC_RELEASE);
    }
    return 0;
}
