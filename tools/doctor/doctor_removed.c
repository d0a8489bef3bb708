/* doctor_removed.c - finds processes whose published directory was removed while they use it. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"
#include "directory/record.h"
#include "doctor.h"
#include "run/descendants.h"

/* Whether the mapping is that of a process's file in procs/ (directory/lease.h), which was removed.
 */
static bool is_removed(char *line) {
    static const char deleted[] = " (deleted)\n";
    struct gps_owner owner;
    char *end = strstr(line, deleted);
    if (!end)
        return false;
    *end = 0;
    const char *file = strrchr(line, '/');
    return file && gps_owner_parse(file + 1, &owner);
}

static bool uses_removed(uint32_t pid) {
    TOOL_TEMP char *line = NULL;
    const int file = descendants_open(pid, "maps");
    FILE *maps = file >= 0 ? fdopen(file, "r") : NULL;
    size_t size = 0;
    bool found = false;
    while (maps && !found && getline(&line, &size, maps) > 0)
        found = is_removed(line);
    if (maps)
        fclose(maps);
    return found;
}

void doctor_removed(struct doctor *doctor) {
    DIR *processes = opendir("/proc");
    unsigned count = 0;
    uint32_t first = 0;
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        const uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (pid == 0 || !uses_removed(pid))
            continue;
        first = count++ == 0 ? pid : first;
    }
    if (processes)
        closedir(processes);
    if (count == 0)
        return;
    diagnosis_add(doctor, DOCTOR_WARN, "directory",
                  "%u process%s (pid %" PRIu32
                  "%s) use%s one that was removed, and share%s nothing "
                  "with programs that started since",
                  count, count == 1 ? "" : "es", first, count == 1 ? "" : ", ...",
                  count == 1 ? "s" : "", count == 1 ? "s" : "");
    diagnosis_remedy(doctor,
                     "start %s again; logind removes /dev/shm/gpushare-UID at a user's "
                     "last logout unless RemoveIPC=no (logind.conf), or the user is a "
                     "system user, or set GPUSHARE_DIR to another tmpfs",
                     count == 1 ? "it" : "them");
}
