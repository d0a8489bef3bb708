#include "vendor.h"

#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <unistd.h>

#include "cli/tool.h"
#include "preload.h"

/* --- what the program is linked with --- */

/* Which runtime a library of this name is of; -1: of none. */
static int of_library(const char *name) {
    return !name                                   ? -1
           : strncmp(name, "libamdhip64", 11) == 0 ? RUNTIME_HIP
           : strncmp(name, "libcuda", 7) == 0      ? RUNTIME_CUDA /* libcudart, too */
                                                   : -1;
}

static int of_dynamic(Elf *elf, Elf_Scn *section, const GElf_Shdr *header) {
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Dyn entry;
    int found = -1;
    for (int i = 0; found < 0 && data && gelf_getdyn(data, i, &entry); i++)
        if (entry.d_tag == DT_NEEDED)
            found = of_library(elf_strptr(elf, header->sh_link, entry.d_un.d_val));
    return found;
}

static int of_elf(Elf *elf) {
    GElf_Shdr header;
    int found = -1;
    for (Elf_Scn *section = NULL; found < 0 && (section = elf_nextscn(elf, section));)
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
            found = of_dynamic(elf, section, &header);
    return found;
}

static int of_program(const char *command) {
    char path[PATH_MAX];
    const int file = preload_program(command, path) == 0
                         ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
                         : -1;
    if (file < 0)
        return -1;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    const int found = elf && elf_kind(elf) == ELF_K_ELF ? of_elf(elf) : -1;
    elf_end(elf);
    close(file);
    return found;
}

/* --- what the machine has: the device files of the kernel's drivers --- */

static enum runtime of_machine(void) {
    return access("/dev/kfd", F_OK) == 0 && access("/dev/nvidiactl", F_OK) != 0 ? RUNTIME_HIP
                                                                                : RUNTIME_CUDA;
}

bool runtime_choose(const char *option, const char *command, enum runtime *runtime) {
    if (!option) {
        const int found = command ? of_program(command) : -1;
        *runtime = found < 0 ? of_machine() : (enum runtime)found;
        return true;
    }
    if (vendor_find(option, runtime))
        return true;
    tool_error("--runtime '%s' is none; allowed: cuda, hip", option);
    return false;
}
