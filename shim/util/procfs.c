#include "procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digits.h"
#include "text.h"

/* The text behind the next `count` blanks; NULL: there are fewer. */
static const char *skip_fields(const char *text, unsigned count) {
    while (text && count-- > 0) {
        text = strchr(text, ' ');
        if (text)
            text++;
    }
    return text;
}

/* Field 2, the command in parentheses, may hold anything, blanks and parentheses too. */
static int parse_stat(const char *text, struct gps_procfs_stat *stat) {
    const char *state = skip_fields(strrchr(text, ')'), 1); /* field 3 */
    const char *parent = skip_fields(state, 1);             /* field 4 */
    const char *threads = skip_fields(parent, 16);          /* field 20 */
    const char *start = skip_fields(threads, 2);            /* field 22 */
    if (!start)
        return -EBADMSG;
    struct gps_procfs_stat parsed;
    parsed.state = *state;
    if (!gps_dec_parse(&parent, &parsed.parent) || !gps_dec_parse(&threads, &parsed.threads) ||
        !gps_dec_parse(&start, &parsed.start))
        return -EBADMSG;
    *stat = parsed;
    return 0;
}

ssize_t gps_procfs_read(const char *path, char *text, size_t size) {
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : TEMP_FAILURE_RETRY(read(fd, text, size - 1));
    if (n < 0)
        n = -errno;
    if (fd >= 0)
        close(fd);
    text[n < 0 ? 0 : n] = '\0';
    return n;
}

int gps_procfs_stat(uint32_t pid, struct gps_procfs_stat *stat) {
    char text[1024]; /* 22 fields of at most 20 digits, and a command of at most 64 bytes */
    char path[64];
    struct gps_text out = GPS_TEXT(path);
    /* The file of the first thread has the same start time. /proc/self/stat is not read, because
     * user-mode emulators (qemu) replace it by one with another start time. */
    gps_text_add(&out, "/proc/%u/task/%u/stat", pid, pid);
    const ssize_t n = gps_procfs_read(path, text, sizeof(text));
    return n < 0 ? (int)n : parse_stat(text, stat);
}

/* thread-self does not come first: qemu replaces self/exe and self/cmdline only. */
void gps_procfs_path(const char *file, char path[GPS_PROCFS_PATH]) {
    char first;
    struct gps_text out = gps_text_on(path, GPS_PROCFS_PATH);
    const bool has_first_thread = readlink("/proc/self/exe", &first, 1) > 0;
    gps_text_strs(&out, has_first_thread ? "/proc/self/" : "/proc/thread-self/", file);
}

void gps_procfs_executable_path(char *path, size_t size) {
    char link[GPS_PROCFS_PATH];
    gps_procfs_path("exe", link);
    const ssize_t n = readlink(link, path, size - 1);
    path[n > 0 ? n : 0] = '\0';
}

void gps_procfs_executable(char *name, size_t size) {
    static const char deleted[] = " (deleted)";
    char path[4096];
    gps_procfs_executable_path(path, sizeof(path));
    size_t length = strlen(path);
    if (length > sizeof(deleted) && strcmp(path + length - (sizeof(deleted) - 1), deleted) == 0)
        path[length - (sizeof(deleted) - 1)] = '\0';
    const char *base = strrchr(path, '/');
    struct gps_text text = gps_text_on(name, size);
    gps_text_str(&text, !base || base[1] == '\0' ? "?" : base + 1);
}

uint64_t gps_procfs_pid_ns(void) {
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* A /proc mounted in another pid namespace shows other pids; its "self" is not getpid(). */
static bool shows_our_pids(void) {
    char link[16];
    const char *at = link;
    ssize_t n = readlink("/proc/self", link, sizeof(link) - 1);
    if (n <= 0)
        return false;
    link[n] = '\0';
    uint64_t pid;
    return gps_dec_parse(&at, &pid) && *at == '\0' && pid == (uint64_t)getpid();
}

int gps_procfs_stat_self(struct gps_procfs_stat *stat) {
    return shows_our_pids() ? gps_procfs_stat((uint32_t)getpid(), stat) : -ENOENT;
}

/* /proc shows start times in the reader's time namespace, so only times in one compare. */
static bool same_clock(uint32_t pid) {
    struct stat ours;
    char path[GPS_PROCFS_PATH];
    gps_procfs_path("ns/time", path);
    if (stat(path, &ours) != 0)
        return errno == ENOENT; /* a kernel without time namespaces */
    struct gps_text out = GPS_TEXT(path);
    gps_text_add(&out, "/proc/%u/ns/time", pid);
    struct stat theirs;
    return stat(path, &theirs) == 0 && ours.st_ino == theirs.st_ino;
}

bool gps_procfs_ended(const struct gps_owner *who) {
    struct gps_procfs_stat now;
    int status = gps_procfs_stat(who->pid, &now);
    if (status == 0 && now.start == who->start)
        return now.state == 'Z' && now.threads <= 1 && shows_our_pids();
    if (!shows_our_pids())
        return false;
    if (status == 0)
        return who->start != 0 && same_clock(who->pid);
    /* hidepid= hides live processes, too; kill does not. It sends no signal. */
    return (status == -ENOENT || status == -ESRCH) && kill((pid_t)who->pid, 0) != 0 &&
           errno == ESRCH;
}
