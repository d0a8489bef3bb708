/* stat.c - glibc has had these as functions since 2.33; before that its headers made other calls of
 * them. Hidden: no other library sees them. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_newfstatat
#define STAT SYS_newfstatat
#else
#define STAT SYS_fstatat64
#endif

int fstatat(int at, const char *restrict path, struct stat *restrict info, int flags) {
    return (int)syscall(STAT, at, path, info, flags);
}

int stat(const char *restrict path, struct stat *restrict info) {
    return (int)syscall(STAT, AT_FDCWD, path, info, 0);
}

int lstat(const char *restrict path, struct stat *restrict info) {
    return (int)syscall(STAT, AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
}

/* In one page of the file with the other code that runs when the library is loaded (sink.c). */
__attribute__((section(".text.startup"))) int fstat(int fd, struct stat *info) {
    return (int)syscall(SYS_fstat, fd, info);
}
