#include "graph_books.h"

#include <stdatomic.h>

#include "hash_table.h"
#include "range_tree.h"
#include "util/forgotten.h"
#include "util/lock.h"

enum { MOST_GRAPHS = 1 << 14 }; /* further graphs are not noted */

/* Memory, once for all graphs. It is in the tree until it ends. */
struct memory {
    struct gps_range range;
    struct gps_graph_memory is;
    struct gps_freed freed;
    uint32_t users;
    bool placed, over;
};

struct use {
    struct gps_graph_use is;
    struct memory *memory;
    bool told;
};

struct graph {
    struct gps_entry entry;
    uint64_t seen; /* gps_graph_ends at the last look */
    unsigned count;
    struct use uses[];
};

static struct {
    GPS_LOCK(GPS_RANK_GRAPHS) lock;
    struct gps_table graphs;
    struct gps_range *alive;
    struct gps_slab slab;
    /* Of memory in the tree, and of graphs: without any, a call costs a load. */
    _Atomic uint64_t count, graph_count;
} books;
GPS_FORGOTTEN(books);

_Atomic uint64_t gps_graph_ends;
GPS_FORGOTTEN(gps_graph_ends);

/* --- memory --- */

static struct memory *memory_from(uint64_t address) {
    return (struct memory *)gps_range_from(books.alive, address);
}

static void displace(struct memory *memory) {
    gps_range_remove(&books.alive, &memory->range);
    memory->placed = false;
    books.count--;
}

static void graph_memory_drop(struct memory *memory) {
    if (--memory->users)
        return;
    if (memory->placed)
        displace(memory);
    gps_slab_put(&books.slab, memory);
}

static bool graph_memory_is_same(const struct gps_graph_memory *a,
                                 const struct gps_graph_memory *b) {
    return a->kind == b->kind && a->base == b->base && a->size == b->size && a->born == b->born;
}

/* Other memory in this place ended unseen, as with its context: it is dropped, not reported. */
static struct memory *memory_of(const struct gps_graph_memory *is) {
    struct memory *memory = memory_from(is->base);
    if (memory && graph_memory_is_same(&memory->is, is))
        return memory;
    while ((memory = memory_from(is->base)) && memory->range.from < is->base + is->size)
        displace(memory);
    memory = gps_slab_get(&books.slab, sizeof(*memory));
    if (!memory)
        return NULL;
    *memory = (struct memory){.range = {.from = is->base, .size = is->size}, .is = *is};
    memory->placed = true;
    books.count++;
    gps_range_add(&books.alive, &memory->range);
    return memory;
}

void gps_graph_memory_ends(enum gps_freed_kind kind, uint64_t base, const struct gps_freed *freed) {
    if (!books.count && !gps_graph_ends)
        return;
    GPS_LOCKED(&books.lock);
    struct memory *const memory = memory_from(base);
    gps_graph_ends++;
    if (!memory || memory->is.kind != kind || memory->is.base != base)
        return;
    displace(memory);
    memory->freed = *freed;
    memory->over = true;
}

/* --- graphs --- */

static struct graph *graph_find(uint64_t exec) {
    return GPS_ENTRY_OF(struct graph, entry, gps_table_find(&books.graphs, exec));
}

static size_t graph_size(unsigned count) {
    return sizeof(struct graph) + count * sizeof(struct use);
}

/* `room`: how many uses the graph has room for. */
static void free_graph(struct graph *graph, unsigned room) {
    for (unsigned i = 0; i < graph->count; i++)
        graph_memory_drop(graph->uses[i].memory);
    gps_table_free(graph, graph_size(room));
}

static void graph_forget(uint64_t exec) {
    struct graph *const graph = graph_find(exec);
    if (!graph)
        return;
    gps_table_remove(&books.graphs, &graph->entry);
    books.graph_count--;
    free_graph(graph, graph->count);
}

void gps_graph_forget(uint64_t exec) {
    if (!books.graph_count)
        return;
    GPS_LOCKED(&books.lock);
    graph_forget(exec);
}

/* False: there is no memory for one of its uses, so none is noted. */
static bool graph_fill(struct graph *graph, const struct gps_graph_uses *uses) {
    for (; graph->count < uses->count; graph->count++) {
        struct use *const use = &graph->uses[graph->count];
        *use = (struct use){.is = uses->list[graph->count]};
        use->memory = memory_of(&use->is.memory);
        if (!use->memory)
            return false;
        use->memory->users++;
    }
    return true;
}

void gps_graph_note(uint64_t exec, const struct gps_graph_uses *uses) {
    GPS_LOCKED(&books.lock);
    graph_forget(exec);
    if (!uses->count || books.graph_count >= MOST_GRAPHS)
        return;
    struct graph *const graph = gps_table_allocate(graph_size(uses->count));
    if (!graph)
        return;
    *graph = (struct graph){.seen = gps_graph_ends};
    if (graph_fill(graph, uses) && gps_table_add(&books.graphs, &graph->entry, exec))
        books.graph_count++;
    else
        free_graph(graph, uses->count);
}

bool gps_graph_is_due(uint64_t exec) {
    GPS_LOCKED(&books.lock);
    struct graph *const graph = graph_find(exec);
    const bool due = graph && graph->seen != gps_graph_ends;
    if (due)
        graph->seen = gps_graph_ends;
    return due;
}

bool gps_graph_over(uint64_t exec, unsigned *at, struct gps_graph_use *use,
                    struct gps_freed *freed) {
    GPS_LOCKED(&books.lock);
    const struct graph *const graph = graph_find(exec);
    for (; graph && *at < graph->count; ++*at) {
        const struct use *const one = &graph->uses[*at];
        if (!one->memory->over || one->told)
            continue;
        *use = one->is;
        *freed = one->memory->freed;
        return true;
    }
    return false;
}

void gps_graph_told(uint64_t exec, unsigned at) {
    GPS_LOCKED(&books.lock);
    struct graph *const graph = graph_find(exec);
    if (graph && at < graph->count)
        graph->uses[at].told = true;
}
