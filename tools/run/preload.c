/*
 * preload.c - finds the library and the program, and judges whether it can be preloaded there.
 */
#include "preload.h"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include "cli/tool.h"
#include "util/procfs.h"

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
    gps_procfs_executable_path(path, PATH_MAX);
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    return slash;
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
    const char *const name = vendors[runtime].library;
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

static int preload_check_file(const char *path, int length) {
    struct stat info;
    if (length >= PATH_MAX)
        return -ENOENT; /* what is cut off is another file */
    if (stat(path, &info) != 0)
        return errno == ENOTDIR ? -ENOENT : -errno;
    return S_ISREG(info.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

int preload_program(const char *command, char path[PATH_MAX]) {
    if (strchr(command, '/'))
        return preload_check_file(path, snprintf(path, PATH_MAX, "%s", command));
    const char *search = getenv("PATH");
    int status = -ENOENT;
    for (search = search ? search : "/bin:/usr/bin"; command[0] != 0; search++) {
        size_t length = strcspn(search, ":");
        int found =
            preload_check_file(path, snprintf(path, PATH_MAX, "%.*s/%s", (int)(length ? length : 1),
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

/* The kernel tells the loader to ignore LD_PRELOAD when a program gains rights by being started. On
 * a file system with nosuid none does, nor by setuid and setgid where no new privileges are given,
 * as in many containers. */
static const char *privilege(const char *path) {
    struct stat info;
    struct statvfs place;
    char capabilities[64];
    if (stat(path, &info) != 0 || (statvfs(path, &place) == 0 && (place.f_flag & ST_NOSUID) != 0))
        return NULL;
    const bool gains = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
    if (gains && (info.st_mode & S_ISUID) != 0 && info.st_uid != getuid())
        return "is setuid: the loader ignores LD_PRELOAD for it";
    if (gains && (info.st_mode & S_ISGID) != 0 && info.st_gid != getgid())
        return "is setgid: the loader ignores LD_PRELOAD for it";
    if (getuid() != 0 &&
        getxattr(path, "security.capability", capabilities, sizeof(capabilities)) > 0)
        return "has file capabilities: the loader ignores LD_PRELOAD for it";
    return NULL;
}

Elf *preload_elf(const char *path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0)
        return NULL;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    elf_cntl(elf, ELF_C_FDREAD); /* the descriptor is not needed any more */
    close(file);
    return elf;
}

Elf_Data *preload_section(Elf *elf, unsigned type, GElf_Shdr *header) {
    Elf_Scn *section = NULL;
    while (elf_kind(elf) == ELF_K_ELF && (section = elf_nextscn(elf, section)))
        if (gelf_getshdr(section, header) && header->sh_type == type)
            return elf_getdata(section, NULL);
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
static bool preload_judge_file(char path[PATH_MAX], const char **obstacle) {
    char head[512] = "";
    size_t size = 0;
    Elf *elf = preload_elf(path);
    const char *bytes = elf_rawfile(elf, &size);
    *obstacle = NULL;
    if (!elf)
        return false;
    if (elf_kind(elf) == ELF_K_ELF)
        *obstacle = judge_elf(elf);
    if (!*obstacle)
        *obstacle = privilege(path); /* the caller ignores a script's, as the kernel does */
    if (bytes)
        memcpy(head, bytes, size < sizeof(head) ? size : sizeof(head) - 1);
    elf_end(elf);
    return script_interpreter(head, path);
}

bool preload_obstacle(const char *path, char *why, unsigned size) {
    char current[PATH_MAX], judged[PATH_MAX];
    const char *obstacle = NULL;
    snprintf(current, sizeof(current), "%s", path);
    for (int depth = 0; depth <= SCRIPT_DEPTH; depth++) {
        memcpy(judged, current, sizeof(judged));
        if (preload_judge_file(current, &obstacle))
            continue;
        if (obstacle && depth > 0)
            snprintf(why, size, "is a script, and its interpreter %s %s", judged, obstacle);
        else if (obstacle)
            snprintf(why, size, "%s", obstacle);
        return obstacle;
    }
    return false;
}

/* --- a library before gpushare's --- */

/* Of these, one is in each library that steps between programs and CUDA. */
static const char *const telling[] = {"dlsym", "cuGetProcAddress_v2", "cuGetProcAddress",
                                      "cuMemAlloc_v2", "cudaMalloc"};
enum { TELLING = sizeof(telling) / sizeof(telling[0]) };

static const char *telling_name(const char *name) {
    for (size_t i = 0; name && i < TELLING; i++)
        if (strcmp(name, telling[i]) == 0)
            return telling[i];
    return NULL;
}

static const char *defined_by(const char *path) {
    Elf *elf = preload_elf(path);
    GElf_Shdr header;
    Elf_Data *const data = preload_section(elf, SHT_DYNSYM, &header);
    const size_t count = data && header.sh_entsize ? data->d_size / header.sh_entsize : 0;
    const char *found = NULL;
    GElf_Sym symbol;
    for (size_t i = 0; i < count && i < INT_MAX && !found; i++)
        if (gelf_getsym(data, (int)i, &symbol) && symbol.st_shndx != SHN_UNDEF)
            found = telling_name(elf_strptr(elf, header.sh_link, symbol.st_name));
    elf_end(elf);
    return found;
}

/* The path of a loaded file, by its name; malloc'ed. */
static char *loaded_path(const char *maps, const char *name) {
    TOOL_TEMP char *end = tool_format("/%s\n", name);
    const char *found = maps ? strstr(maps, end) : NULL, *line = found;
    while (line && line > maps && line[-1] != '\n')
        line--;
    const char *const path = line ? strchr(line, '/') : NULL;
    return path ? tool_format("%.*s", (int)(found + strlen(end) - 1 - path), path) : NULL;
}

/* A phrase without its end, or NULL. *ended: the library itself was found. */
static char *search(const char *list, const char *source, const char *library, const char *maps,
                    bool *ended) {
    TOOL_TEMP char *names = tool_copy(list);
    char *phrase = NULL, *rest = names;
    for (const char *name; !phrase && !*ended && (name = strsep(&rest, " :\t\n"));) {
        TOOL_TEMP char *path = strchr(name, '/') ? tool_copy(name)
                               : *name           ? loaded_path(maps, name)
                                                 : NULL;
        *ended = strcmp(basename(name), library) == 0;
        const char *const defined = path && !*ended ? defined_by(path) : NULL;
        if (defined)
            phrase = tool_format("%s stands before %s in %s and defines %s", path, library, source,
                                 defined);
    }
    return phrase;
}

char *rival_system_list(void) {
    size_t size;
    const int file = open(RIVAL_SYSTEM_LIST, O_RDONLY | O_CLOEXEC);
    char *list = tool_read(file, &size);
    if (file >= 0)
        close(file);
    return list;
}

char *rival_of(const char *preload, const char *library, const char *maps) {
    TOOL_TEMP char *list = rival_system_list();
    bool ended = false;
    char *phrase = search(tool_or(preload, ""), "LD_PRELOAD", library, maps, &ended);
    if (!phrase && !ended)
        phrase = search(list, RIVAL_SYSTEM_LIST, library, maps, &ended);
    if (phrase && (strstr(tool_or(preload, ""), library) || strstr(list, library)))
        return phrase;
    free(phrase);
    return NULL;
}
