#include "vendor.h"

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

static int of_program(const char *command) {
    char path[PATH_MAX];
    GElf_Shdr header;
    GElf_Dyn entry;
    int found = -1;
    if (preload_program(command, path) != 0)
        return found;
    Elf *elf = preload_elf(path);
    Elf_Data *data = preload_section(elf, SHT_DYNAMIC, &header);
    for (int i = 0; found < 0 && data && gelf_getdyn(data, i, &entry); i++)
        if (entry.d_tag == DT_NEEDED)
            found = of_library(elf_strptr(elf, header.sh_link, entry.d_un.d_val));
    elf_end(elf);
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
    return tool_error("--runtime '%s' is none; allowed: cuda, hip", option);
}
