/*
 * main.c - misuse: finds the scenario, starts the second process before CUDA is touched, and says
 * by the exit status whether the driver answered as recorded: 0 yes, 1 no, 77 not to be had here.
 */
#include "misuse.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>

static const struct scenario *const topics[] = {
    free_scenarios,    close_scenarios, open_scenarios, export_scenarios, event_scenarios,
    life_scenarios,    share_scenarios,
#ifndef VENDOR_HIP
    context_scenarios, copy_scenarios,  vmm_scenarios,  pool_scenarios,   token_scenarios,
#endif
};
enum { TOPICS = sizeof(topics) / sizeof(*topics) };

static struct {
    bool right;
    const char *role; /* NULL: there is but one process */
    int channel;      /* to the other process */
    pid_t child;      /* 0: none, or it has been waited for */
    int result;
} self = {.channel = -1};

bool right(void) {
    return self.right;
}

/* --- what it prints: each line in one write, as two processes have one stdout --- */

void note(bool good, const char *format, ...) {
    char line[512];
    size_t used = self.role ? (size_t)snprintf(line, sizeof(line), "%s: ", self.role) : 0;
    va_list arguments;
    va_start(arguments, format);
    const int more = vsnprintf(line + used, sizeof(line) - used - 32, format, arguments);
    va_end(arguments);
    used += more > 0 ? (size_t)more : 0;
    used += (size_t)snprintf(line + used, sizeof(line) - used, good ? "\n" : " - UNEXPECTED\n");
    if (write(1, line, used) != (ssize_t)used || !good)
        self.result = 1;
}

static int name_length(const char *call) {
    const bool driver = strncmp(call, "CU(", 3) == 0;
    return (int)strcspn(call + (driver ? 3 : 0), driver ? ")" : "(");
}

static const char *name_of(const char *call) {
    return strncmp(call, "CU(", 3) == 0 ? call + 3 : call;
}

void check_code(int code, int expected, const char *call) {
    note(code == expected, "%.*s: %s (%d)", name_length(call), name_of(call),
         cudaGetErrorString((cudaError_t)code), code);
}

void must_code(int code, const char *call) {
    if (!code)
        return;
    note(false, "%.*s: %s (%d)", name_length(call), name_of(call),
         cudaGetErrorString((cudaError_t)code), code);
    exit(1);
}

void skip(const char *why) {
    note(true, "skipped: %s", why);
    exit(SKIPPED);
}

/* --- the other process --- */

int status_of(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int wait_for_end(void) {
    const pid_t child = self.child;
    self.child = 0;
    return child ? status_of(child) : 0;
}

void send_bytes(const void *bytes, size_t size) {
    if (send(self.channel, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
        exit(1);
}

/* A peer that ended early says why by its exit status. */
void take_bytes(void *bytes, size_t size) {
    if (recv(self.channel, bytes, size, MSG_WAITALL) != (ssize_t)size)
        exit(self.child && wait_for_end() == SKIPPED ? SKIPPED : 1);
}

union control {
    char room[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
};

void send_descriptor(int descriptor) {
    union control control = {.room = {0}};
    struct iovec byte = {"", 1};
    const struct msghdr message = {.msg_iov = &byte,
                                   .msg_iovlen = 1,
                                   .msg_control = &control,
                                   .msg_controllen = sizeof(control)};
    control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(descriptor));
    if (sendmsg(self.channel, &message, MSG_NOSIGNAL) != 1)
        exit(1);
}

int take_descriptor(void) {
    char byte;
    int descriptor;
    union control control = {.room = {0}};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    if (recvmsg(self.channel, &message, 0) != 1 || !CMSG_FIRSTHDR(&message))
        exit(self.child && wait_for_end() == SKIPPED ? SKIPPED : 1);
    memcpy(&descriptor, CMSG_DATA(&control.header), sizeof(descriptor));
    return descriptor;
}

void tell(void) {
    send_bytes("", 1);
}

void wait_for_peer(void) {
    char byte;
    take_bytes(&byte, sizeof(byte));
}

/* By fork and exec, so that it begins as a program of its own, and before any call to CUDA. */
static void start_second(const char *id) {
    int ends[2];
    char number[16];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        exit(1);
    self.channel = ends[0];
    snprintf(number, sizeof(number), "%d", ends[1]);
    self.child = fork();
    if (self.child == 0) {
        close(ends[0]);
        execl("/proc/self/exe", "misuse", self.right ? "--right" : "--wrong", id, number, NULL);
        _exit(1);
    }
    close(ends[1]);
    if (self.child < 0)
        exit(1);
}

static int run(const struct scenario *scenario, bool second) {
    const bool exports = second == scenario->exporter_is_child;
    if (scenario->importer) {
        self.role = exports ? "exporter" : "importer";
        if (!second)
            start_second(scenario->id);
    }
    (exports ? scenario->exporter : scenario->importer)();
    const int others = wait_for_end();
    return others ? others : self.result;
}

/* --- which --- */

static const struct scenario *find(const char *id) {
    for (size_t i = 0; id && i < TOPICS; i++)
        for (const struct scenario *one = topics[i]; one->id; one++)
            if (strcmp(one->id, id) == 0)
                return one;
    return NULL;
}

static int list(void) {
    for (size_t i = 0; i < TOPICS; i++)
        for (const struct scenario *one = topics[i]; one->id; one++)
            puts(one->id);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    const bool option = argc > 2 && argv[1][0] == '-';
    const struct scenario *scenario = find(argv[1 + option]);
    if (!scenario) {
        fprintf(stderr, "usage: misuse [--right] ID | --list\n");
        return 2;
    }
    self.right = option && strcmp(argv[1], "--right") == 0;
    const char *channel = option ? argv[3] : NULL;
    if (channel)
        self.channel = atoi(channel);
    return run(scenario, channel != NULL);
}
