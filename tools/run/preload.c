/*
 * preload.c - finds the library and the program, and judges whether the one can be preloaded into
 * the other.
 */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/tool.h"

#define SCRIPT_DEPTH 4 /* the kernel follows this many interpreters */

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#define MULTIARCH   "/../lib/x86_64-linux-gnu"
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#define MULTIARCH   "/../lib/aarch64-linux-gnu"
#else
#error "which ELF machine is this?"
#endif

/* --- the library --- */

static bool try_directory(const char *base, const char *below, const char *name,
                          char path[PATH_MAX]) {
    char candidate[PATH_MAX];
    int length = snprintf(candidate, sizeof(candidate), "%s%s/%s", base, below, name);
    return length < (int)sizeof(candidate) && realpath(candidate, path) && access(path, R_OK) == 0;
}

static bool own_directory(char path[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length <= 0)
        return false;
    path[length] = 0;
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    *slash = 0;
    return true;
}

bool preload_library(enum runtime runtime, char path[PATH_MAX]) {
    static const char *const below[] = {"", "/../lib", "/../lib64", MULTIARCH};
    const char *given = getenv("GPUSHARE_LIBRARY");
    if (given && given[0] != 0) {
        TOOL_TEMP char *chosen =
            tool_absolute(given); /* a link is not resolved: it was chosen on purpose */
        const bool found = chosen && access(chosen, R_OK) == 0;
        snprintf(path, PATH_MAX, "%s%s", found ? "" : "GPUSHARE_LIBRARY=", found ? chosen : given);
        return found;
    }
    const char *const name = vendor_library(runtime);
    char own[PATH_MAX] = "";
    bool known = own_directory(own);
    for (size_t i = 0; known && i < sizeof(below) / sizeof(below[0]); i++)
        if (try_directory(own, below[i], name, path))
            return true;
    if (try_directory(GPS_LIBDIR, "", name, path))
        return true;
    snprintf(path, PATH_MAX, "%.2000s, the lib directories beside it, " GPS_LIBDIR, own);
    return false;
}

bool preload_can_name(const char *path) {
    return !strpbrk(path, " \t\n:");
}

/* --- the driver --- */

char *preload_simulator(void) {
    char own[PATH_MAX], driver[PATH_MAX];
    return own_directory(own) && try_directory(own, "/sim", "libcuda.so.1", driver)
               ? tool_format("%s/sim", own)
               : NULL;
}

char *preload_no_driver(enum runtime runtime) {
    void *driver = runtime == RUNTIME_CUDA ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) : NULL;
    TOOL_TEMP char *simulator = preload_simulator();
    if (driver)
        dlclose(driver);
    return driver || runtime != RUNTIME_CUDA
               ? NULL
               : tool_format("there is no libcuda.so.1, NVIDIA's driver, which CUDA needs%s%s",
                             simulator ? "; a simulated one is there with LD_LIBRARY_PATH=" : "",
                             tool_or(simulator, ""));
}

/* --- the program --- */

static int check(const char *path, int length) {
    struct stat info;
    if (length >= PATH_MAX)
        return -ENOENT; /* what is cut off is another file */
    if (stat(path, &info) != 0)
        return errno == ENOTDIR ? -ENOENT : -errno;
    return S_ISREG(info.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

int preload_program(const char *command, char path[PATH_MAX]) {
    if (strchr(command, '/'))
        return check(path, snprintf(path, PATH_MAX, "%s", command));
    const char *search = getenv("PATH");
    int status = -ENOENT;
    for (search = search ? search : "/bin:/usr/bin"; command[0] != 0; search++) {
        size_t length = strcspn(search, ":");
        int found = check(path, snprintf(path, PATH_MAX, "%.*s/%s", (int)(length ? length : 1),
                                         length ? search : ".", command));
        if (found == 0)
            return 0;
        status = found == -EACCES ? found : status;
        search += length;
        if (*search == 0)
            break;
    }
    return status;
}

/* The kernel tells the loader to ignore LD_PRELOAD when a program gains rights by being started. */
static const char *privilege(const char *path) {
    struct stat info;
    char capabilities[64];
    if (stat(path, &info) != 0)
        return NULL;
    if ((info.st_mode & S_ISUID) != 0 && info.st_uid != getuid())
        return "is setuid: the loader ignores LD_PRELOAD for it";
    if ((info.st_mode & S_ISGID) != 0 && info.st_gid != getgid())
        return "is setgid: the loader ignores LD_PRELOAD for it";
    if (getuid() != 0 &&
        getxattr(path, "security.capability", capabilities, sizeof(capabilities)) > 0)
        return "has file capabilities: the loader ignores LD_PRELOAD for it";
    return NULL;
}

static const char *judge_elf(Elf *elf) {
    GElf_Ehdr header;
    GElf_Phdr segment = {.p_type = PT_NULL};
    size_t count, size;
    const char *bytes = elf_rawfile(elf, &size);
    if (gelf_getclass(elf) != ELFCLASS64)
        return "is a 32-bit program, the library is 64-bit";
    if (!gelf_getehdr(elf, &header) || elf_getphdrnum(elf, &count) != 0 || count < header.e_phnum)
        return PRELOAD_DAMAGED;
    if (header.e_machine != OWN_MACHINE)
        return "is built for another processor than the library";
    for (int i = 0; i < (int)count && segment.p_type != PT_INTERP; i++)
        if (!gelf_getphdr(elf, i, &segment))
            return PRELOAD_DAMAGED;
    if (segment.p_type != PT_INTERP)
        return "is statically linked: no loader reads LD_PRELOAD for it";
    if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset)
        return PRELOAD_DAMAGED;
    return memmem(bytes + segment.p_offset, segment.p_filesz, "ld-musl", 7)
               ? "uses musl, the library needs glibc"
               : NULL;
}

/* "#!/usr/bin/python3 -E" */
static bool script_interpreter(char *head, char path[PATH_MAX]) {
    if (strncmp(head, "#!", 2) != 0)
        return false;
    head[strcspn(head, "\n")] = 0;
    head += 2 + strspn(head + 2, " \t");
    head[strcspn(head, " \t")] = 0;
    snprintf(path, PATH_MAX, "%s", head);
    return head[0] != 0;
}

/* Judges one executable; *obstacle NULL: there is none. True: it is a script, and `path` becomes
 * that of its interpreter. */
static bool judge(char path[PATH_MAX], const char **obstacle) {
    char head[512] = "";
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    *obstacle = NULL;
    if (file < 0)
        return false;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    if (elf && elf_kind(elf) == ELF_K_ELF)
        *obstacle = judge_elf(elf);
    elf_end(elf);
    (void)!pread(file, head, sizeof(head) - 1, 0);
    close(file);
    if (!*obstacle)
        *obstacle = privilege(path); /* the caller ignores a script's, as the kernel does */
    return script_interpreter(head, path);
}

bool preload_obstacle(const char *path, char *why, unsigned size) {
    char current[PATH_MAX], judged[PATH_MAX];
    const char *obstacle = NULL;
    snprintf(current, sizeof(current), "%s", path);
    for (int depth = 0; depth <= SCRIPT_DEPTH; depth++) {
        memcpy(judged, current, sizeof(judged));
        if (judge(current, &obstacle))
            continue;
        if (obstacle && depth > 0)
            snprintf(why, size, "is a script, and its interpreter %s %s", judged, obstacle);
        else if (obstacle)
            snprintf(why, size, "%s", obstacle);
        return obstacle;
    }
    return false;
}
