/*
 * metrics.c - `gpushare metrics`: writes the usage for Prometheus.
 *
 * The new file is written beside the old one, and then replaces it. A reader sees one of them
 * whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/tool.h"
#include "exposition.h"

enum { OPTION_OUTPUT };

/* Everybody may read the file, as node_exporter does. 0 or -errno; closes the descriptor. */
static int write_all(int descriptor, const struct usage *usage) {
    FILE *file = fdopen(descriptor, "w");
    if (!file) {
        const int status = -errno;
        close(descriptor);
        return status;
    }
    int status = fchmod(descriptor, 0644) != 0 ? -errno : 0;
    errno = 0;
    exposition_write(file, usage);
    if (fflush(file) != 0 || ferror(file))
        status = errno != 0 ? -errno : -EIO;
    if (fclose(file) != 0 && status == 0)
        status = -errno;
    return status;
}

static int replace(const char *path, const struct usage *usage) {
    char *temporary = tool_format("%s.XXXXXX", path);
    const int descriptor = mkostemp(temporary, O_CLOEXEC);
    int status = descriptor < 0 ? -errno : write_all(descriptor, usage);
    if (status == 0 && rename(temporary, path) != 0)
        status = -errno;
    if (status != 0 && descriptor >= 0)
        unlink(temporary);
    free(temporary);
    return status;
}

static int run_metrics(const struct tool_args *args) {
    static struct usage usage;
    const char *path = tool_or(args->values[OPTION_OUTPUT], "-");
    int status = 0;
    usage_begin(&usage, args->operands, (size_t)args->operand_count);
    if (!usage_read(&usage)) {
        usage_end(&usage);
        return TOOL_FAILED;
    }
    if (strcmp(path, "-") == 0)
        exposition_write(stdout, &usage);
    else
        status = replace(path, &usage);
    usage_end(&usage);
    if (status != 0)
        tool_error("cannot write '%s': %s", path, strerror(-status));
    return status == 0 ? TOOL_OK : TOOL_FAILED;
}

const struct tool_verb tool_verb_metrics = {
    .name = "metrics",
    .operands = "[LOG...]",
    .summary = "write what top shows for Prometheus",
    .details = "Bytes in use and saved of each GPU; bytes and users of each region; own, "
               "shared and proportional bytes of each process; findings. For node_exporter's "
               "textfile collector give a FILE whose name ends with .prom in its directory; it "
               "is replaced as a whole. `gpushare keeper --metrics=FILE` writes it again and "
               "again. LOGs are as for `gpushare top`.\n",
    .options = {{"output", 'o', "FILE", "write it there; \"-\" is standard output (-)"}},
    .operands_max = 1000000,
    .run = run_metrics,
};
