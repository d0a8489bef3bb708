/*
 * dependencies.c - see dependencies.h. All loaded objects are collected once and their names are
 * put into a hash table, so the cost of a walk is linear in the number of names.
 */
#include "dependencies.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { BUCKETS = 1024, MOST = 1 << 14 /* objects */ };

struct name {
    const char *text;
    struct node *node;
    struct name *next; /* in its bucket */
};

struct node {
    struct gps_module module;
    struct name names[3];
    struct node *next; /* in the queue of nodes to visit */
    bool seen;
};

struct walk {
    const struct gps_module *root;
    gps_module_fn *fn;
    void *arg;
    bool done;
    struct node *first, **end; /* the queue */
    uint32_t count;
    struct name *buckets[BUCKETS];
    struct node nodes[MOST]; /* memory is touched as they are collected */
};

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The place of a name in its bucket, or the end of the bucket. */
static struct name **find(struct walk *walk, const char *text) {
    uint32_t hash = 5381;
    for (const char *c = text; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    struct name **name = &walk->buckets[hash % BUCKETS];
    while (*name && strcmp((*name)->text, text) != 0)
        name = &(*name)->next;
    return name;
}

/* The first object in load order has the name, as the linker chooses. */
static void add_name(struct walk *walk, struct name *name, struct node *node, const char *text) {
    struct name **place = find(walk, text);
    if (*place)
        return;
    *name = (struct name){text, node, NULL};
    *place = name;
}

static bool add(void *arg, const struct gps_module *module) {
    struct walk *walk = arg;
    struct node *node = &walk->nodes[walk->count++];
    const char *soname = gps_module_soname(module);
    node->module = *module;
    node->seen = module->base == walk->root->base;
    if (*module->path) { /* nothing needs the main program */
        add_name(walk, &node->names[0], node, module->path);
        add_name(walk, &node->names[1], node, base_name(module->path));
        if (soname)
            add_name(walk, &node->names[2], node, soname);
    }
    return walk->count == MOST;
}

static void enqueue(void *arg, const char *needed) {
    struct walk *walk = arg;
    struct name *name = *find(walk, needed);
    if (name && !name->node->seen) {
        name->node->seen = true;
        *walk->end = name->node;
        walk->end = &name->node->next;
    }
}

/* The whole walk runs in the first callback of an iteration of the linker, which holds the linker's
 * lock, so that no object is loaded or unloaded meanwhile. */
static bool walk_locked(void *arg, const struct gps_module *any) {
    struct walk *walk = arg;
    (void)any;
    gps_module_each(add, walk);
    walk->end = &walk->first;
    gps_module_each_needed(walk->root, enqueue, walk);
    for (struct node *node = walk->first; node && !walk->done; node = node->next) {
        walk->done = walk->fn(walk->arg, &node->module);
        if (!walk->done)
            gps_module_each_needed(&node->module, enqueue, walk);
    }
    return true;
}

bool gps_dependencies_each(const struct gps_module *module, gps_module_fn *fn, void *arg) {
    const int error = errno;
    bool done = false;
    struct walk *walk = mmap(NULL, sizeof(*walk), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (walk != MAP_FAILED) {
        walk->root = module;
        walk->fn = fn;
        walk->arg = arg;
        gps_module_each(walk_locked, walk);
        done = walk->done;
        munmap(walk, sizeof(*walk));
    }
    errno = error;
    return done;
}
