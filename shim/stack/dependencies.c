/*
 * dependencies.c - see dependencies.h. All loaded objects are collected once and their names are
 * put into a hash table, so the cost of a walk is linear in the number of names.
 */
#include "dependencies.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct node {
    struct gps_module module;
    struct node *next; /* in the queue of nodes to visit */
    bool seen;
};

/* One name of a node. The table is never full, so a search ends at an empty slot. */
struct slot {
    struct node *node;
    uint32_t hash;
};

struct walk {
    const struct gps_module *root;
    gps_module_fn *fn;
    void *arg;
    bool done;
    uint32_t most, count, mask;
    struct node *nodes, *first, **end;
    struct slot *slots;
};

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static uint32_t hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static bool is_called(const struct gps_module *module, const char *name) {
    const char *soname = gps_module_soname(module);
    return (soname && strcmp(soname, name) == 0) || strcmp(base_name(module->path), name) == 0 ||
           strcmp(module->path, name) == 0;
}

/* The first object in load order that has the name, as the linker chooses. */
static struct node *named(const struct walk *walk, const char *name) {
    const uint32_t hash = hash_of(name);
    for (uint32_t i = hash;; i++) {
        const struct slot *slot = &walk->slots[i & walk->mask];
        if (!slot->node || (slot->hash == hash && is_called(&slot->node->module, name)))
            return slot->node;
    }
}

static void add_name(const struct walk *walk, struct node *node, const char *name) {
    const uint32_t hash = hash_of(name);
    uint32_t i = hash;
    while (walk->slots[i & walk->mask].node)
        i++;
    walk->slots[i & walk->mask] = (struct slot){node, hash};
}

static bool add(void *arg, const struct gps_module *module) {
    struct walk *walk = arg;
    struct node *node = &walk->nodes[walk->count++];
    *node = (struct node){.module = *module, .seen = module->base == walk->root->base};
    if (!*module->path) /* nothing needs the main program */
        return false;
    const char *soname = gps_module_soname(module);
    const char *base = base_name(module->path);
    add_name(walk, node, module->path);
    if (base != module->path)
        add_name(walk, node, base);
    if (soname && strcmp(soname, base) != 0)
        add_name(walk, node, soname);
    return false;
}

static bool count(void *arg, const struct gps_module *module) {
    struct walk *walk = arg;
    (void)module;
    walk->most++;
    return false;
}

static bool enqueue(void *arg, const char *needed) {
    struct walk *walk = arg;
    struct node *node = named(walk, needed);
    if (node && !node->seen) {
        node->seen = true;
        *walk->end = node;
        walk->end = &node->next;
    }
    return false;
}

static void visit_all(struct walk *walk) {
    walk->end = &walk->first;
    gps_module_each_needed(walk->root, enqueue, walk);
    for (struct node *node = walk->first; node && !walk->done; node = node->next) {
        walk->done = walk->fn(walk->arg, &node->module);
        if (!walk->done)
            gps_module_each_needed(&node->module, enqueue, walk);
    }
}

/* The whole walk runs in the first callback of an iteration of the linker, which holds the linker's
 * lock, so that no object is loaded or unloaded meanwhile. */
static bool walk_locked(void *arg, const struct gps_module *any) {
    struct walk *walk = arg;
    (void)any;
    gps_module_each(count, walk);
    uint32_t slots = 8;
    while (slots < 4 * walk->most) /* up to three names each */
        slots *= 2;
    const size_t bytes = walk->most * sizeof(struct node) + slots * sizeof(struct slot);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return true;
    walk->nodes = memory;
    walk->slots = (struct slot *)(walk->nodes + walk->most);
    walk->mask = slots - 1;
    gps_module_each(add, walk);
    visit_all(walk);
    munmap(memory, bytes);
    return true;
}

bool gps_dependencies_each(const struct gps_module *module, gps_module_fn *fn, void *arg) {
    struct walk walk = {.root = module, .fn = fn, .arg = arg};
    const int error = errno;
    gps_module_each(walk_locked, &walk);
    errno = error;
    return walk.done;
}
