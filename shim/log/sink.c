#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "channel.h"
#include "util/lock.h"
#include "util/program_signals.h"
#include "util/text.h"

/* How often a partial write to a full pipe is continued, and how many milliseconds each attempt
 * waits for room. Half a report is useless, but the program must not hang either. */
#define RETRIES  5
#define RETRY_MS 10

/* The file behind descriptor 2 when the library was loaded. The initialiser is not zero, so that
 * the struct lies in a page that the linker has already written to. */
static struct {
    bool closed;
    dev_t device;
    ino_t inode;
} at_load = {.closed = true};

static struct {
    char path[GPS_SINK_PATH]; /* of the log; empty: stderr */
    bool plain;               /* the user wants no colours */
    atomic_bool complained;
} state;

/* It shares a page with the constructor that calls it. */
__attribute__((section(".text.startup"))) void gps_sink_start(void) {
    struct stat info;
    const int error = errno;
    at_load.closed = fstat(STDERR_FILENO, &info) != 0;
    errno = error;
    if (at_load.closed)
        return;
    at_load.device = info.st_dev;
    at_load.inode = info.st_ino;
}

static void expand(const char *log, uint32_t pid, const char *command, struct gps_text *path) {
    for (; *log != '\0'; log++) {
        if (*log != '%')
            gps_text_bytes(path, log, 1);
        else if (*++log == 'p')
            gps_text_dec(path, pid);
        else if (*log == 'c')
            gps_text_str(path, command);
        else
            gps_text_bytes(path, "%", 1);
    }
}

static bool sink_is_plain(void) {
    const char *no = getenv("NO_COLOR"), *kind = getenv("TERM");
    return (no && *no) || (kind && strcmp(kind, "dumb") == 0);
}

bool gps_sink_colours(bool to_stderr) {
    return (to_stderr || state.path[0] == '\0') && !state.plain && isatty(STDERR_FILENO);
}

void gps_sink_path(char to[GPS_SINK_PATH], const char *log, uint32_t pid, const char *command) {
    struct gps_text path = gps_text_on(to, GPS_SINK_PATH);
    if (*log != '/' && getcwd(to, GPS_SINK_PATH - 1) != NULL) {
        path.length = strlen(to);
        gps_text_str(&path, "/");
    }
    expand(log, pid, command, &path);
}

void gps_sink_open(const char *log, uint32_t pid, const char *command) {
    state.plain = sink_is_plain();
    atomic_store(&state.complained, false);
    state.path[0] = '\0';
    if (strcmp(log, "stderr") != 0)
        gps_sink_path(state.path, log, pid, command);
}

/* --- one write --- */

/* 0 if all bytes were written, else errno. Does not wait if not one byte can be written. */
static int sink_write_all(int fd, const char *bytes, size_t count) {
    int retries = RETRIES;
    size_t done = 0;
    while (done < count) {
        ssize_t wrote = write(fd, bytes + done, count - done);
        if (wrote > 0) {
            done += (size_t)wrote;
            retries = RETRIES;
        } else if (wrote < 0 && errno == EINTR && retries-- > 0) {
            continue;
        } else if (wrote < 0 && errno == EAGAIN && done > 0 && retries-- > 0) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            (void)poll(&room, 1, RETRY_MS);
        } else {
            return wrote < 0 ? errno : EIO;
        }
    }
    return 0;
}

/* Blocks the two signals that a write can raise. */
int gps_sink_put(int fd, const char *bytes, size_t count) {
    gps_lock_check(GPS_ACROSS_FILE, "the use of a file");
    sigset_t raised;
    sigemptyset(&raised);
    sigaddset(&raised, SIGPIPE);
    sigaddset(&raised, SIGXFSZ);
    sigset_t before;
    sigprocmask(SIG_BLOCK, &raised, &before);
    sigset_t pending;
    sigpending(&pending);
    int error = sink_write_all(fd, bytes, count);
    if (error == EPIPE && !sigismember(&pending, SIGPIPE))
        gps_signal_discard(SIGPIPE);
    if (error == EFBIG && !sigismember(&pending, SIGXFSZ))
        gps_signal_discard(SIGXFSZ);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Whether descriptor 2 is still the program's stderr. A program may close it, and then a socket or
 * a database can get its number. Trusted are the file that was there at load, and the usual targets
 * of a daemon's redirection: a terminal, or a file or pipe opened for writing only. */
static bool stderr_is_stderr(void) {
    struct stat info;
    if (fstat(STDERR_FILENO, &info) != 0)
        return false;
    if (!at_load.closed && info.st_dev == at_load.device && info.st_ino == at_load.inode)
        return true;
    int flags = fcntl(STDERR_FILENO, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_WRONLY)
        return true;
    return isatty(STDERR_FILENO) != 0;
}

static bool write_stderr(const char *bytes, size_t count) {
    return stderr_is_stderr() && gps_sink_put(STDERR_FILENO, bytes, count) == 0;
}

void gps_sink_complain(const char *what, const char *path, const char *why, const char *so) {
    GPS_NEW_TEXT(text, GPS_SINK_PATH + 256);
    gps_text_strs(&text, "========= GPUSHARE: cannot write to the ", what);
    gps_text_plain(&text, path);
    gps_text_strs(&text, ": ", why, "; ", so, "\n");
    (void)write_stderr(text.bytes, text.length);
}

/* /dev/stdout and its like are symbolic links, but only root can make links there. */
static bool is_system_link(const char *path) {
    return strncmp(path, "/dev/", 5) == 0 && !strchr(path + 5, '/');
}

/* Why the file must not be written to, or NULL: another user may have planted it at the path. */
static const char *sink_refuse(int fd) {
    struct stat info;
    if (fd < 0)
        return errno == ELOOP ? "it is a symbolic link" : gps_error_text(errno);
    if (fstat(fd, &info) != 0)
        return gps_error_text(errno);
    return S_ISCHR(info.st_mode) || info.st_uid == geteuid() ? NULL : "it belongs to another user";
}

/* O_NONBLOCK: a FIFO without a reader must not stop the program. */
int gps_sink_open_file(const char *path, const char **why) {
    gps_lock_check(GPS_ACROSS_FILE, "the use of a file");
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    const int fd = open(path, flags | (is_system_link(path) ? 0 : O_NOFOLLOW), 0600);
    *why = sink_refuse(fd);
    if (*why && fd >= 0)
        close(fd);
    return *why ? -1 : fd;
}

static bool write_file(const char *bytes, size_t count, const char **why) {
    const int fd = gps_sink_open_file(state.path, why);
    const int error = fd >= 0 ? gps_sink_put(fd, bytes, count) : 0;
    if (fd >= 0)
        close(fd);
    if (error != 0)
        *why = gps_error_text(error);
    return fd >= 0 && error == 0;
}

static bool write_log(const char *bytes, size_t count) {
    const char *why;
    if (write_file(bytes, count, &why))
        return true;
    if (!atomic_exchange(&state.complained, true))
        gps_sink_complain("log ", state.path, why, "reports go to stderr");
    return write_stderr(bytes, count);
}

static bool write_plain(const char *bytes, size_t count, bool to_stderr) {
    return to_stderr || state.path[0] == '\0' ? write_stderr(bytes, count)
                                              : write_log(bytes, count);
}

void gps_sink_lose(void) {
    if (gps_channel_is_open())
        atomic_fetch_add(&gps_channel()->lost, 1);
}

/* A line for another file, as before the configuration is read, is lost to the audit. If the tool
 * does not empty the channel a file is better: it stays. */
static bool write_audit(const char *bytes, size_t count, bool to_stderr) {
    const char *why, *name = to_stderr ? NULL : gps_channel_name(state.path);
    if (!name) {
        gps_sink_lose();
        return write_plain(bytes, count, to_stderr);
    }
    atomic_fetch_add(&gps_channel()->lines, 1);
    if ((gps_channel_is_attended() && gps_channel_put(name, bytes, count)) ||
        write_file(bytes, count, &why) || gps_channel_put(name, bytes, count))
        return true;
    gps_sink_lose();
    return false;
}

bool gps_sink_write(const char *bytes, size_t count, bool to_stderr) {
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    const bool whole = gps_channel_is_open() ? write_audit(bytes, count, to_stderr)
                                             : write_plain(bytes, count, to_stderr);
    pthread_setcancelstate(cancel, NULL);
    return whole;
}
