/* rival.c - see rival.h. */
#include "rival.h"

#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool.h"

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

static const char *defined_in(Elf *elf, Elf_Scn *section, const GElf_Shdr *header) {
    Elf_Data *const data = elf_getdata(section, NULL);
    const size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    const char *found = NULL;
    GElf_Sym symbol;
    for (size_t i = 0; i < count && i < INT_MAX && !found; i++)
        if (gelf_getsym(data, (int)i, &symbol) && symbol.st_shndx != SHN_UNDEF)
            found = telling_name(elf_strptr(elf, header->sh_link, symbol.st_name));
    return found;
}

static const char *defined_by(const char *path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const char *found = NULL;
    GElf_Shdr header;
    if (file < 0)
        return NULL;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    for (Elf_Scn *section = NULL; elf && !found && (section = elf_nextscn(elf, section));)
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
            found = defined_in(elf, section, &header);
    elf_end(elf);
    close(file);
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
        *ended = strcmp(tool_base_name(name), library) == 0;
        const char *const defined = path && !*ended ? defined_by(path) : NULL;
        if (defined)
            phrase = tool_format("%s stands before %s in %s and defines %s", path, library, source,
                                 defined);
    }
    return phrase;
}

char *rival_of(const char *preload, const char *library, const char *maps) {
    const int file = open(RIVAL_SYSTEM_LIST, O_RDONLY | O_CLOEXEC);
    size_t size;
    TOOL_TEMP char *list = file >= 0 ? tool_read(file, &size) : NULL;
    bool ended = false;
    if (file >= 0)
        close(file);
    char *phrase = search(tool_or(preload, ""), "LD_PRELOAD", library, maps, &ended);
    if (!phrase && !ended)
        phrase = search(tool_or(list, ""), RIVAL_SYSTEM_LIST, library, maps, &ended);
    if (phrase && (strstr(tool_or(preload, ""), library) || strstr(tool_or(list, ""), library)))
        return phrase;
    free(phrase);
    return NULL;
}
