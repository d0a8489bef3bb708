/*
 * unwinder.c - what the library's own copy of libgcc's unwinder wants of libpthread, which was a
 * library of its own before glibc 2.34, and is not in every program.
 *
 * libgcc takes the first for a sign that there are threads. Where the second fails, it sets its
 * table up itself; to do so twice does no harm.
 */
#include <errno.h>
#include <pthread.h>

int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *));

int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
    (void)key;
    (void)destructor;
    return ENOSYS;
}

int pthread_once(pthread_once_t *once, void (*fn)(void)) {
    (void)once;
    (void)fn;
    return ENOSYS;
}
