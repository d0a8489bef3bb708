#include "module_place.h"

#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "util/linker.h"

enum { PAGE = 4096 };

/* For a module without .eh_frame_hdr: its version is invalid, so the unwinder finds nothing. */
static const uint32_t no_frames;

static uintptr_t object_segment_place(const struct dl_phdr_info *info, ElfW(Word) type) {
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == type)
            return info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    return 0;
}

static struct link_map *map_of(const struct dl_phdr_info *info) {
    const uintptr_t dynamic = object_segment_place(info, PT_DYNAMIC);
    struct link_map *map = _r_debug.r_map;
    while (map && (map->l_addr != info->dlpi_addr || (uintptr_t)map->l_ld != dynamic))
        map = map->l_next;
    return map;
}

static void object_measure(const struct dl_phdr_info *info, struct dl_find_object *found) {
    uintptr_t start = UINTPTR_MAX, end = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uintptr_t at = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && at < start)
            start = at & -(uintptr_t)PAGE;
        if (segment->p_type == PT_LOAD && at + segment->p_memsz > end)
            end = at + segment->p_memsz;
    }
    found->dlfo_map_start = (void *)start;
    found->dlfo_map_end = (void *)end;
}

struct search {
    uintptr_t address;
    struct dl_find_object found;
};

static int is_at(struct dl_phdr_info *info, size_t size, void *arg) {
    struct search *search = arg;
    struct dl_find_object *found = &search->found;
    (void)size;
    object_measure(info, found);
    const uintptr_t start = (uintptr_t)found->dlfo_map_start;
    if (search->address - start >= (uintptr_t)found->dlfo_map_end - start)
        return 0;
    const uintptr_t frames = object_segment_place(info, PT_GNU_EH_FRAME);
    found->dlfo_eh_frame = (void *)(frames ? frames : (uintptr_t)&no_frames);
    return (found->dlfo_link_map = map_of(info)) != NULL;
}

int gps_find_object_listed(void *address, struct dl_find_object *found) {
    struct search search = {.address = (uintptr_t)address};
    if (!gps_linker_each(is_at, &search))
        return -1;
    *found = search.found;
    return 0;
}

typedef int find_fn(void *address, struct dl_find_object *found);

static _Atomic(find_fn *) chosen;

int _dl_find_object(void *address, struct dl_find_object *found) {
    find_fn *find = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!find) {
        find = GPS_LATE(_dl_find_object);
        find = find ? find : gps_find_object_listed;
        atomic_store_explicit(&chosen, find, memory_order_relaxed);
    }
    return find(address, found);
}
