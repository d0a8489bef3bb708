/*
 * inject.c - runs a command and makes one system call of one of its modules fail, without executing
 * it.
 *
 * usage: inject [-m MODULE] [-r RECORD] [-f SYSCALL:N[+]:ERRNO] [-s TIME] [-l LOG] -- COMMAND...
 *
 *   -m MODULE   whose calls count: the file name of a mapping (libgpushare.so)
 *   -r RECORD   writes "SYSCALL COUNT" for each system call that the module made
 *   -f ...      the N-th call (1 is the first; with +, each one from it on) answers ERRNO; KILL
 *               instead of an errno kills the process there
 *   -s TIME     names each call that takes longer than so many microseconds, the tracer's own part
 *               of some ten included
 *   -l LOG      writes a line for each call that was made to fail: its number and the places in the
 *               module that lead to it, as offsets for addr2line, innermost first; and for each
 * that was slow the same, with its time in microseconds before the places
 *
 * Its exit status is the command's, 128 + N after signal N. Calls are counted over all threads and
 * forked children of the command; a child that executes another program is left alone.
 *
 * Whose a call is: the first return address on the stack, from the stack pointer up, that lies
 * outside libc and the loader. A word is taken for one if it points behind a call instruction. So a
 * call that the driver makes under one of our hooks is the driver's, and one that libc makes for us
 * is ours. It can err where a word that an earlier call out of the module left behind lies in a
 * frame of libc's, and it looks at 8 KiB of stack only. x86-64 only.
 */
#include "../common/system_headers.h"

#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#ifndef __x86_64__
#error "for x86-64 only"
#endif

enum { TRACEES = 512, RANGES = 256, STACK_WORDS = 1024, PLACES = 8 };
enum owner { SYSTEM, MODULE, OTHER };

#define CALLS(ROW)                                                                                 \
    ROW(openat)                                                                                    \
    ROW(open)                                                                                      \
    ROW(read)                                                                                      \
    ROW(write)                                                                                     \
    ROW(pread64)                                                                                   \
    ROW(pwrite64)                                                                                  \
    ROW(readv)                                                                                     \
    ROW(writev)                                                                                    \
    ROW(lseek)                                                                                     \
    ROW(mmap)                                                                                      \
    ROW(mprotect)                                                                                  \
    ROW(munmap)                                                                                    \
    ROW(mremap)                                                                                    \
    ROW(brk)                                                                                       \
    ROW(madvise)                                                                                   \
    ROW(close)                                                                                     \
    ROW(dup)                                                                                       \
    ROW(dup2)                                                                                      \
    ROW(dup3)                                                                                      \
    ROW(fcntl)                                                                                     \
    ROW(flock)                                                                                     \
    ROW(ftruncate)                                                                                 \
    ROW(fallocate)                                                                                 \
    ROW(fchmod)                                                                                    \
    ROW(fstat)                                                                                     \
    ROW(newfstatat)                                                                                \
    ROW(statx)                                                                                     \
    ROW(faccessat)                                                                                 \
    ROW(faccessat2)                                                                                \
    ROW(access)                                                                                    \
    ROW(rename)                                                                                    \
    ROW(renameat)                                                                                  \
    ROW(renameat2)                                                                                 \
    ROW(link)                                                                                      \
    ROW(linkat)                                                                                    \
    ROW(symlink)                                                                                   \
    ROW(symlinkat)                                                                                 \
    ROW(readlink)                                                                                  \
    ROW(readlinkat)                                                                                \
    ROW(unlink)                                                                                    \
    ROW(unlinkat)                                                                                  \
    ROW(mkdir)                                                                                     \
    ROW(mkdirat)                                                                                   \
    ROW(getdents64)                                                                                \
    ROW(socket)                                                                                    \
    ROW(socketpair)                                                                                \
    ROW(connect)                                                                                   \
    ROW(bind)                                                                                      \
    ROW(listen)                                                                                    \
    ROW(accept4)                                                                                   \
    ROW(sendmsg)                                                                                   \
    ROW(recvmsg)                                                                                   \
    ROW(sendto)                                                                                    \
    ROW(recvfrom)                                                                                  \
    ROW(setsockopt)                                                                                \
    ROW(getsockopt)                                                                                \
    ROW(pipe2)                                                                                     \
    ROW(eventfd2)                                                                                  \
    ROW(timerfd_create)                                                                            \
    ROW(timerfd_settime)                                                                           \
    ROW(signalfd4)                                                                                 \
    ROW(epoll_create1)                                                                             \
    ROW(epoll_ctl)                                                                                 \
    ROW(epoll_wait)                                                                                \
    ROW(epoll_pwait)                                                                               \
    ROW(inotify_init1)                                                                             \
    ROW(inotify_add_watch)                                                                         \
    ROW(inotify_rm_watch)                                                                          \
    ROW(poll)                                                                                      \
    ROW(ppoll)                                                                                     \
    ROW(select)                                                                                    \
    ROW(pselect6)                                                                                  \
    ROW(nanosleep)                                                                                 \
    ROW(clock_nanosleep)                                                                           \
    ROW(clone)                                                                                     \
    ROW(clone3)                                                                                    \
    ROW(fork)                                                                                      \
    ROW(vfork)                                                                                     \
    ROW(execve)                                                                                    \
    ROW(execveat)                                                                                  \
    ROW(wait4)                                                                                     \
    ROW(waitid)                                                                                    \
    ROW(pidfd_open)                                                                                \
    ROW(pidfd_getfd)                                                                               \
    ROW(kill)                                                                                      \
    ROW(memfd_create)                                                                              \
    ROW(getrandom)                                                                                 \
    ROW(setsid)                                                                                    \
    ROW(sigaltstack)                                                                               \
    ROW(rt_sigprocmask)                                                                            \
    ROW(rt_sigaction)                                                                              \
    ROW(prctl)                                                                                     \
    ROW(sched_getaffinity)                                                                         \
    ROW(getcwd)                                                                                    \
    ROW(uname)                                                                                     \
    ROW(statfs)                                                                                    \
    ROW(fstatfs)                                                                                   \
    ROW(fsync)                                                                                     \
    ROW(prlimit64)                                                                                 \
    ROW(futex)                                                                                     \
    ROW(membarrier)

static struct call {
    long number;
    const char *name;
    unsigned count;
} calls[] = {
#define CALL_ROW(name) {SYS_##name, #name, 0},
    CALLS(CALL_ROW)
#undef CALL_ROW
};
enum { CALL_COUNT = sizeof calls / sizeof *calls };

struct range {
    uint64_t start, end, offset;
    enum owner owner;
};

struct tracee {
    pid_t tid;
    int answer;              /* what the call under way is to answer; 0: its own */
    const struct call *call; /* of the module's, if slow ones are sought; else NULL */
    uint64_t began;          /* microseconds */
    uint64_t places[PLACES];
    size_t place_count;
};

static struct {
    const char *module, *record;
    const struct call *call; /* NULL: none is to fail */
    unsigned nth;
    bool on; /* and each one after it */
    bool lethal;
    int error;
    uint64_t slow; /* microseconds; 0: none is */
    FILE *log;
    pid_t command;
    int status;
    struct tracee tracees[TRACEES];
    size_t tracee_count;
    /* the mappings of the process looked at last; they are read anew when they may have changed */
    pid_t mapped;
    struct range ranges[RANGES];
    size_t range_count;
} state = {.module = "libgpushare.so"};

static void die(const char *what) {
    perror(what);
    exit(125);
}

/* --- whose code an address is in --- */

static enum owner owner_of_file(const char *path) {
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    if (strcmp(name, state.module) == 0)
        return MODULE;
    if (strncmp(name, "libc.so", 7) == 0 || strncmp(name, "ld-linux", 8) == 0 || *name == '[' ||
        strncmp(name, "libpthread", 10) == 0)
        return SYSTEM;
    return OTHER;
}

static void read_ranges(pid_t pid) {
    char path[64], line[PATH_MAX + 128];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    state.range_count = 0;
    state.mapped = pid;
    while (maps && fgets(line, sizeof line, maps) && state.range_count < RANGES) {
        unsigned long start, end, offset;
        char rights[8], file[PATH_MAX] = "";
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095s", &start, &end, rights, &offset, file) < 4)
            continue;
        if (rights[2] == 'x')
            state.ranges[state.range_count++] =
                (struct range){start, end, offset, owner_of_file(file)};
    }
    if (maps)
        fclose(maps);
}

static const struct range *find_range(uint64_t address) {
    for (size_t i = 0; i < state.range_count; i++)
        if (address >= state.ranges[i].start && address < state.ranges[i].end)
            return &state.ranges[i];
    return NULL;
}

static bool peek(pid_t pid, uint64_t from, void *to, size_t size) {
    const struct iovec here = {to, size}, there = {(void *)(uintptr_t)from, size};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* call rel32, or call through a register or memory: ff /2, of 2 to 4, 6 or 7 bytes */
static bool is_behind_call(pid_t pid, uint64_t address) {
    unsigned char before[7];
    if (!peek(pid, address - sizeof before, before, sizeof before))
        return false;
    if (before[2] == 0xe8)
        return true;
    for (size_t at = 0; at < 6; at++)
        if (before[at] == 0xff && (before[at + 1] >> 3 & 7) == 2 && at != 2)
            return true;
    return false;
}

/* Whether that call may lead out of its module: through a register or memory, or to a stub that
 * jumps through memory. What an earlier call left in a frame of libc's is a call inside of the
 * module, as a rule. */
static bool is_behind_way_out(pid_t pid, uint64_t address) {
    unsigned char before[5], stub[6];
    int32_t distance;
    if (!peek(pid, address - sizeof before, before, sizeof before) || before[0] != 0xe8)
        return true;
    memcpy(&distance, before + 1, sizeof distance);
    const uint64_t target = address + (uint64_t)(int64_t)distance;
    if (!peek(pid, target, stub, sizeof stub))
        return true;
    const bool marked = memcmp(stub, "\xf3\x0f\x1e\xfa", 4) == 0; /* endbr64 */
    return stub[marked ? 4 : 0] == 0xff && stub[marked ? 5 : 1] == 0x25;
}

/* The places in the module that lead to the call, innermost first; none if it is another's. */
static size_t places_of(pid_t pid, uint64_t sp, uint64_t ip, uint64_t places[PLACES]) {
    static uint64_t stack[STACK_WORDS];
    size_t words = STACK_WORDS, count = 0;
    const struct range *range = find_range(ip);
    if (range && range->owner == MODULE)
        places[count++] = ip - range->start + range->offset;
    else if (range && range->owner == OTHER)
        return 0;
    while (words && !peek(pid, sp, stack, words * sizeof *stack))
        words /= 2;
    for (size_t i = 0; i < words && count < PLACES; i++) {
        range = find_range(stack[i]);
        if (!range || range->owner == SYSTEM || !is_behind_call(pid, stack[i]))
            continue;
        if (range->owner == OTHER)
            break;
        if (!count && !is_behind_way_out(pid, stack[i]))
            continue;
        places[count++] = stack[i] - range->start + range->offset;
    }
    return count;
}

/* --- system calls --- */

static struct call *find_call(long number) {
    for (size_t i = 0; i < CALL_COUNT; i++)
        if (calls[i].number == number)
            return &calls[i];
    return NULL;
}

static void set_register(pid_t tid, size_t offset, long value) {
    if (ptrace(PTRACE_POKEUSER, tid, offset, value) != 0 && errno != ESRCH)
        die("inject: PTRACE_POKEUSER");
}

static uint64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void say(const struct call *call, uint64_t number, const uint64_t *places, size_t count) {
    if (!state.log)
        return;
    fprintf(state.log, "%s %llu", call->name, (unsigned long long)number);
    for (size_t i = 0; i < count; i++)
        fprintf(state.log, " 0x%llx", (unsigned long long)places[i]);
    fputc('\n', state.log);
    fflush(state.log);
}

static void enter(struct tracee *tracee, const struct __ptrace_syscall_info *info) {
    uint64_t places[PLACES];
    struct call *call = find_call((long)info->entry.nr);
    if (!call)
        return;
    if (state.mapped != tracee->tid)
        read_ranges(tracee->tid);
    const size_t count =
        places_of(tracee->tid, info->stack_pointer, info->instruction_pointer, places);
    if (!count)
        return;
    call->count++;
    if (state.slow) {
        tracee->call = call;
        tracee->place_count = count;
        memcpy(tracee->places, places, sizeof places);
        tracee->began = microseconds();
    }
    if (call != state.call || (state.on ? call->count < state.nth : call->count != state.nth))
        return;
    say(call, call->count, places, count);
    if (state.lethal) {
        kill(tracee->tid, SIGKILL);
        return;
    }
    tracee->answer = state.error;
    set_register(tracee->tid, offsetof(struct user, regs.orig_rax), -1);
}

static void leave(struct tracee *tracee) {
    if (tracee->answer)
        set_register(tracee->tid, offsetof(struct user, regs.rax), -tracee->answer);
    tracee->answer = 0;
    const uint64_t took = tracee->call ? microseconds() - tracee->began : 0;
    if (took > state.slow)
        say(tracee->call, took, tracee->places, tracee->place_count);
    tracee->call = NULL;
}

/* New code may have been mapped by any of these. */
static bool changes_code(const struct __ptrace_syscall_info *info) {
    return (info->entry.nr == SYS_mmap || info->entry.nr == SYS_mprotect) &&
           (info->entry.args[2] & 4) != 0;
}

static void at_system_call(struct tracee *tracee) {
    struct __ptrace_syscall_info info;
    memset(&info, 0, sizeof info);
    if (ptrace(PTRACE_GET_SYSCALL_INFO, tracee->tid, sizeof info, &info) < 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        enter(tracee, &info);
        if (changes_code(&info))
            state.mapped = 0;
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
        leave(tracee);
    }
}

/* --- tracing --- */

static struct tracee *tracee_of(pid_t tid) {
    for (size_t i = 0; i < state.tracee_count; i++)
        if (state.tracees[i].tid == tid)
            return &state.tracees[i];
    if (state.tracee_count == TRACEES)
        die("inject: too many threads");
    state.tracees[state.tracee_count] = (struct tracee){.tid = tid};
    return &state.tracees[state.tracee_count++];
}

static void forget(pid_t tid) {
    for (size_t i = 0; i < state.tracee_count; i++)
        if (state.tracees[i].tid == tid)
            state.tracees[i] = state.tracees[--state.tracee_count];
    if (state.mapped == tid)
        state.mapped = 0;
}

static void at_stop(pid_t tid, int status) {
    const int number = WSTOPSIG(status), event = status >> 16;
    struct tracee *tracee = tracee_of(tid);
    int request = PTRACE_SYSCALL;
    long deliver = 0;
    if (number == (SIGTRAP | 0x80)) {
        at_system_call(tracee);
    } else if (event == PTRACE_EVENT_EXEC) {
        state.mapped = 0;
        if (tid != state.command) { /* another program: the keeper, the daemon */
            forget(tid);
            request = PTRACE_DETACH;
        }
    } else if (event == PTRACE_EVENT_STOP) {
        if (number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU)
            request = PTRACE_LISTEN;
    } else if (!event) {
        deliver = number;
    }
    ptrace(request, tid, 0, deliver);
}

static void trace(void) {
    int status;
    pid_t tid;
    while ((tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (tid <= 0)
            continue;
        if (WIFSTOPPED(status)) {
            at_stop(tid, status);
            continue;
        }
        forget(tid);
        if (tid == state.command)
            state.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

static void start(char **command) {
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    int gate[2];
    char byte;
    if (pipe2(gate, O_CLOEXEC) != 0)
        die("inject: pipe2");
    state.command = fork();
    if (state.command == 0) {
        close(gate[1]);
        if (read(gate[0], &byte, 1) < 0)
            _exit(126);
        if (getenv("INJECT_PRELOAD")) /* ours needs no library of theirs */
            setenv("LD_PRELOAD", getenv("INJECT_PRELOAD"), 1);
        unsetenv("INJECT_PRELOAD");
        execvp(command[0], command);
        _exit(127);
    }
    if (state.command < 0 || ptrace(PTRACE_SEIZE, state.command, 0, options) != 0 ||
        ptrace(PTRACE_INTERRUPT, state.command, 0, 0) != 0)
        die("inject: PTRACE_SEIZE");
    tracee_of(state.command);
    close(gate[1]);
    close(gate[0]);
}

/* --- what to do --- */

static int errno_of(const char *name) {
    for (int i = 1; i < 200; i++)
        if (strerrorname_np(i) && strcmp(strerrorname_np(i), name) == 0)
            return i;
    fprintf(stderr, "inject: no errno %s\n", name);
    exit(125);
}

static void parse_fault(char *text) {
    const char *name = strsep(&text, ":"), *which = strsep(&text, ":"), *error = text;
    for (size_t i = 0; i < CALL_COUNT; i++)
        if (strcmp(calls[i].name, name) == 0)
            state.call = &calls[i];
    if (!state.call || !which || !error) {
        fputs("inject: -f SYSCALL:N[+]:ERRNO, of a system call in its list\n", stderr);
        exit(125);
    }
    state.nth = (unsigned)atoi(which);
    state.on = strchr(which, '+') != NULL;
    state.lethal = strcmp(error, "KILL") == 0;
    state.error = state.lethal ? 0 : errno_of(error);
}

static void write_record(void) {
    FILE *record = state.record ? fopen(state.record, "w") : NULL;
    if (!record)
        return;
    for (size_t i = 0; i < CALL_COUNT; i++)
        if (calls[i].count)
            fprintf(record, "%s %u\n", calls[i].name, calls[i].count);
    fclose(record);
}

int main(int argc, char **argv) {
    int option;
    while ((option = getopt(argc, argv, "+m:r:f:s:l:")) > 0) {
        if (option == 'm')
            state.module = optarg;
        else if (option == 'r')
            state.record = optarg;
        else if (option == 'f')
            parse_fault(optarg);
        else if (option == 's')
            state.slow = strtoull(optarg, NULL, 10);
        else if (option == 'l')
            state.log = fopen(optarg, "we");
        else
            return 125;
    }
    if (optind == argc) {
        fputs("usage: inject [-m MODULE] [-r RECORD] [-f SYSCALL:N[+]:ERRNO] [-s TIME] [-l LOG] "
              "-- COMMAND\n",
              stderr);
        return 125;
    }
    start(argv + optind);
    trace();
    write_record();
    return state.status;
}
