/* gc.c - `gpushare gc`: removes the files of dead processes from the published directory. */

#include "cli/printable.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "directory/orphans.h"
#include "directory/region.h"
#include "view.h"

enum { OPTION_DRY_RUN };

/* "Removed 3 regions, 1 name and 2 files of dead processes." */
static void print_counts(const struct gps_gc_counts *counts, bool dry_run) {
    const struct {
        unsigned count;
        const char *one, *many;
    } kinds[] = {
        {counts->regions, "region", "regions"},
        {counts->names, "name", "names"},
        {counts->procs, "file of a dead process", "files of dead processes"},
        {counts->temps, "temporary file", "temporary files"},
    };
    const size_t count = sizeof(kinds) / sizeof(kinds[0]);
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        left += kinds[i].count > 0;
    fputs(left == 0 ? "Nothing to remove.\n" : dry_run ? "Would remove " : "Removed ", stdout);
    for (size_t i = 0; i < count; i++) {
        if (kinds[i].count == 0)
            continue;
        left--;
        printf("%u %s%s", kinds[i].count, kinds[i].count == 1 ? kinds[i].one : kinds[i].many,
               left > 1    ? ", "
               : left == 1 ? " and "
                           : ".\n");
    }
    if (counts->in_use > 0)
        printf("Kept %u region%s whose owner%s gone: live processes still hold %s.\n",
               counts->in_use, counts->in_use == 1 ? "" : "s",
               counts->in_use == 1 ? " is" : "s are", counts->in_use == 1 ? "it" : "them");
}

static char *path_of(const char *directory, const char *name) {
    return strcmp(directory, ".") == 0 ? tool_copy(name) : tool_format("%s/%s", directory, name);
}

static void gc_warn_of_odd_file(void *arg, const char *directory, const char *name) {
    const struct gps_store *store = arg;
    TOOL_TEMP char *path = path_of(directory, name);
    tool_warn("skipped %s/%s, which is no file of gpushare's", store->path, path);
}

/* "regions/0123...  frames, 64 MiB, of camera 4242" */
static void name_entry(void *arg, const char *directory, const char *name) {
    const struct gps_store *store = arg;
    struct gps_region_record record;
    struct gps_id id;
    TOOL_TEMP char *path = path_of(directory, name);
    const bool of_region = strcmp(directory, GPS_REGIONS) == 0 || strcmp(directory, GPS_FREED) == 0;
    if (of_region && gps_id_parse(name, &id) && gps_region_read(store, &id, &record, NULL) == 0)
        term_line(stdout, "%s  %s, %s, of %s %u", path, record.name[0] ? record.name : "no name",
                  printable_size(record.requested).text, gps_record_creator(&record)->command,
                  gps_record_creator(&record)->pid);
    else
        term_line(stdout, "%s", path);
}

static int run_gc(const struct tool_args *args) {
    struct gps_gc_counts counts = {0};
    struct gps_store store;
    const bool dry_run = args->values[OPTION_DRY_RUN];
    int status = view_store_open(false, &store);
    if (status != 0 && status != -ENOENT)
        return TOOL_FAILED;
    if (status == 0) {
        gps_odd_each(&store, gc_warn_of_odd_file, &store);
        status = gps_store_gc_each(&store, dry_run, &counts, dry_run ? name_entry : NULL, &store);
        if (status != 0) {
            tool_error("cannot clean up %s: %s", store.path, strerror(-status));
            return TOOL_FAILED;
        }
    }
    print_counts(&counts, dry_run);
    return TOOL_OK;
}

const struct tool_verb tool_verb_gc = {
    .name = "gc",
    .operands = "",
    .summary = "remove what dead processes left",
    .details = "Files and names of dead processes go, their regions unless somebody still holds "
               "them, temporary files, and files that are damaged.\n"
               "Touches nothing that a live process owns or holds; safe beside running programs.\n",
    .options = {{"dry-run", 'n', NULL, "only name what would be removed"}},
    .run = run_gc,
};
