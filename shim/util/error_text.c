/* error_text.c - see error_text.h. */
#include "error_text.h"

#include <errno.h>

static const char *const texts[] = {
    [EPERM] = "Operation not permitted",
    [ENOENT] = "No such file or directory",
    [EINTR] = "Interrupted system call",
    [EIO] = "Input/output error",
    [ENXIO] = "No such device or address",
    [EBADF] = "Bad file descriptor",
    [EAGAIN] = "Resource temporarily unavailable",
    [ENOMEM] = "Cannot allocate memory",
    [EACCES] = "Permission denied",
    [EFAULT] = "Bad address",
    [EBUSY] = "Device or resource busy",
    [EEXIST] = "File exists",
    [EXDEV] = "Invalid cross-device link",
    [ENODEV] = "No such device",
    [ENOTDIR] = "Not a directory",
    [EISDIR] = "Is a directory",
    [EINVAL] = "Invalid argument",
    [ENFILE] = "Too many open files in system",
    [EMFILE] = "Too many open files",
    [ENOTTY] = "Inappropriate ioctl for device",
    [ETXTBSY] = "Text file busy",
    [EFBIG] = "File too large",
    [ENOSPC] = "No space left on device",
    [ESPIPE] = "Illegal seek",
    [EROFS] = "Read-only file system",
    [EMLINK] = "Too many links",
    [EPIPE] = "Broken pipe",
    [ENAMETOOLONG] = "File name too long",
    [ENOSYS] = "Function not implemented",
    [ENOTEMPTY] = "Directory not empty",
    [ELOOP] = "Too many levels of symbolic links",
    [EOVERFLOW] = "Value too large for defined data type",
    [EBADMSG] = "Bad message",
    [EPROTO] = "Protocol error",
    [EDQUOT] = "Disk quota exceeded",
    [EOPNOTSUPP] = "Operation not supported",
    [ECONNREFUSED] = "Connection refused",
    [ECONNRESET] = "Connection reset by peer",
    [ETIMEDOUT] = "Connection timed out",
    [ESTALE] = "Stale file handle",
};

const char *gps_error_text(int error) {
    const int count = sizeof(texts) / sizeof(texts[0]);
    return error > 0 && error < count && texts[error] ? texts[error] : "unknown error";
}
