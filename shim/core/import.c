/* import.c - see import.h. */
#include "import.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "life.h"
#include "ops.h"
#include "report.h"

/* Free slot numbers below `used`, as a stack. */
static struct {
    pthread_mutex_t lock;
    unsigned used, free_count, free_size;
    unsigned *free;
} slots = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- slots --- */

static unsigned slot_new(void) {
    return slots.free_count ? slots.free[--slots.free_count] : slots.used++;
}

static void slot_return(unsigned index) {
    if (slots.free_count == slots.free_size) {
        const unsigned size = slots.free_size ? 2 * slots.free_size : 64;
        unsigned *larger = realloc(slots.free, size * sizeof(*larger));
        if (!larger)
            return; /* the number is lost, the file one slot longer */
        slots.free = larger;
        slots.free_size = size;
    }
    slots.free[slots.free_count++] = index;
}

static void slot_write(const struct gps_import *import, enum gps_slot_state state) {
    struct gps_lease *lease = gps_life_lease();
    struct gps_slot slot = {.region = import->region,
                            .address = import->pointer,
                            .since = gps_life_now(),
                            .state = (uint32_t)state,
                            .via = (uint32_t)import->via,
                            .generation = import->generation};
    if (state == GPS_SLOT_FREE)
        slot = (struct gps_slot){0};
    else
        gps_slot_seal(&slot);
    const int status = lease ? gps_lease_write(lease, import->slot, &slot) : 0;
    if (status < 0)
        gps_report_store(status, "an open handle could not be published");
}

static void slot_take(struct gps_import *import) {
    import->slot = GPS_NO_SLOT;
    if (!gps_life_lease())
        return;
    pthread_mutex_lock(&slots.lock);
    import->slot = slot_new();
    slot_write(import, GPS_SLOT_INTENT);
    pthread_mutex_unlock(&slots.lock);
}

static void slot_commit(const struct gps_import *import) {
    if (import->slot == GPS_NO_SLOT)
        return;
    pthread_mutex_lock(&slots.lock);
    slot_write(import, GPS_SLOT_OPEN);
    pthread_mutex_unlock(&slots.lock);
}

static void slot_clear(const struct gps_import *import) {
    if (import->slot == GPS_NO_SLOT)
        return;
    pthread_mutex_lock(&slots.lock);
    slot_write(import, GPS_SLOT_FREE);
    slot_return(import->slot);
    pthread_mutex_unlock(&slots.lock);
}

/* --- opening --- */

static void take_record(struct gps_opening *opening) {
    const char *why = NULL;
    const int status = gps_life_store() ? gps_region_read(gps_life_store(), &opening->import.region,
                                                          &opening->record, &why)
                                        : -ENOENT;
    if (status == -EBADMSG)
        gps_report_record(&opening->import.region, why);
    opening->recorded = status == 0;
    if (!opening->recorded)
        return;
    opening->import.owner = opening->record.owner;
    opening->import.generation = opening->record.generation;
    opening->import.size = opening->record.requested;
    memcpy(opening->import.name, opening->record.name, GPS_NAME_BYTES);
}

static bool is_over(const struct gps_region_record *record) {
    return record->status.state == GPS_STATE_CLOSING || record->status.state == GPS_STATE_FREED;
}

static void report_open(const struct gps_opening *opening, enum gps_finding finding) {
    struct gps_report report = gps_report_new(finding);
    gps_report_about_import(&report, &opening->import);
    gps_report_send(&report);
}

static struct gps_answer ask(enum gps_ask what, enum gps_known known) {
    return gps_policy(&(struct gps_question){
        .ask = what, .known = known, .mode = gps_life_config()->options.mode});
}

/* Without a context, or of one's own, the driver has other codes; those are the program's to get.
 */
static bool is_stale(const struct gps_opening *opening) {
    return is_over(&opening->record) && opening->import.context &&
           !gps_owner_equal(&opening->record.owner, gps_life_self());
}

/* Written intent, then read state: never the other way round. */
static struct gps_answer ask_first(struct gps_opening *opening) {
    slot_take(&opening->import);
    take_record(opening);
    return ask(GPS_ASK_OPEN, !opening->recorded  ? GPS_KNOWN_NOTHING
                             : is_stale(opening) ? GPS_KNOWN_STALE
                                                 : GPS_KNOWN_LIVE);
}

bool gps_import_prepare(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES],
                        int *code) {
    opening->recorded = false;
    opening->import = (struct gps_import){.slot = GPS_NO_SLOT, .via = GPS_VIA_PROGRAM};
    opening->import.region = gps_id_of_handle(handle);
    gps_ops->context(&opening->import.context);
    struct gps_import open_here;
    if (gps_registry_opened(&opening->import.region, opening->import.context, &open_here)) {
        opening->import = open_here;
        opening->import.slot = GPS_NO_SLOT; /* the slot stays with the first open */
        opening->finding = ask(GPS_ASK_OPEN, GPS_KNOWN_OPEN_HERE).finding;
        return true;
    }
    struct gps_scope scope;
    gps_scope_begin(&scope);
    memcpy(opening->import.handle, handle, GPS_HANDLE_BYTES);
    const struct gps_answer answer = ask_first(opening);
    opening->finding = answer.finding;
    if (answer.verdict == GPS_DENY) {
        slot_clear(&opening->import);
        report_open(opening, answer.finding);
        *code = answer.code;
    }
    gps_scope_end(&scope);
    return answer.verdict != GPS_DENY;
}

/* Why the driver refused: only now is it worth asking whether the owner lives. */
static void explain(struct gps_opening *opening, int code) {
    enum gps_known known = GPS_KNOWN_NOTHING;
    if (opening->recorded && code == GPS_INVALID_HANDLE &&
        gps_lease_probe(gps_life_store(), &opening->import.owner) == GPS_DEAD)
        known = GPS_KNOWN_DEAD_OWNER;
    const enum gps_finding finding = ask(GPS_ASK_OPENED, known).finding;
    if (finding != GPS_NO_FINDING)
        report_open(opening, finding);
}

static void commit_first(struct gps_opening *opening, int code) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    if (code != GPS_OK) {
        slot_clear(&opening->import);
        explain(opening, code);
    } else if (opening->import.count == 1) {
        if (opening->recorded && opening->record.status.state == GPS_STATE_FINAL)
            gps_region_take(gps_life_store(), &opening->import.region);
        slot_commit(&opening->import);
    } else {
        slot_clear(&opening->import); /* another thread opened it at the same time */
    }
    if (code == GPS_OK && opening->finding != GPS_NO_FINDING)
        report_open(opening, opening->finding);
    gps_scope_end(&scope);
}

/* Another thread closed it for the last time between our look and our open: it is a first open
 * again. */
static void slot_late(struct gps_import *import) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    slot_take(import);
    slot_commit(import);
    if (!gps_registry_set_slot(import->pointer, import->slot))
        slot_clear(import); /* closed again already */
    gps_scope_end(&scope);
}

void gps_import_commit(struct gps_opening *opening, int code, uint64_t pointer) {
    struct gps_import *import = &opening->import;
    const bool first = import->count == 0;
    if (code == GPS_OK) {
        import->pointer = pointer;
        import->epoch = gps_registry_now();
        gps_registry_open(import);
    }
    if (!first && code == GPS_OK && import->count == 1)
        slot_late(import);
    if (first || (code == GPS_OK && import->count > 1 && !import->reopened))
        commit_first(opening, code);
}

int gps_import_by_rule(const struct gps_region_record *record, uint64_t size, uint64_t *pointer) {
    struct gps_opening opening = {.finding = GPS_NO_FINDING};
    struct gps_import *import = &opening.import;
    *import = (struct gps_import){.region = record->id, .via = GPS_VIA_RULE};
    memcpy(import->handle, record->handle, GPS_HANDLE_BYTES);
    gps_ops->context(&import->context);
    slot_take(import);
    take_record(&opening);
    if (!opening.recorded || is_over(&opening.record) ||
        opening.record.generation != record->generation) {
        slot_clear(import);
        return -1;
    }
    import->size = size;
    const int code = gps_ops->open_handle(import->handle, &import->pointer);
    if (code != GPS_OK) {
        slot_clear(import);
        return code;
    }
    import->epoch = gps_registry_now();
    gps_registry_open(import);
    if (opening.record.status.state == GPS_STATE_FINAL)
        gps_region_take(gps_life_store(), &import->region);
    if (import->count == 1)
        slot_commit(import);
    else
        slot_clear(import);
    *pointer = import->pointer;
    return GPS_OK;
}

bool gps_import_handle(uint64_t pointer, uint8_t handle[GPS_HANDLE_BYTES]) {
    struct gps_alloc alloc;
    struct gps_import import;
    if (!gps_registry_find(pointer, &alloc) || alloc.kind != GPS_ALLOC_IMPORTED ||
        !gps_registry_import_at(pointer, &import))
        return false;
    memcpy(handle, import.handle, GPS_HANDLE_BYTES);
    return true;
}

/* --- closing --- */

static void clear_last(const struct gps_import *import) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    slot_clear(import);
    gps_scope_end(&scope);
}

static int close_counted(uint64_t pointer, gps_close_fn *close) {
    struct gps_import import;
    if (!gps_registry_close(pointer, &import))
        return close(pointer);
    const int code = close(pointer);
    if (code != GPS_OK)
        gps_registry_unclose(&import);
    else if (import.count == 0)
        clear_last(&import);
    return code;
}

int gps_import_close(uint64_t pointer, gps_close_fn *close) {
    struct gps_import import;
    struct gps_alloc alloc;
    /* The program believes that it allocated a rule's import: closing that one open is an error. */
    if (gps_registry_import_at(pointer, &import) && import.count == 1 &&
        gps_registry_find(pointer, &alloc) && alloc.kind == GPS_ALLOC_IMPORTED)
        return GPS_INVALID_VALUE;
    return close_counted(pointer, close);
}

int gps_import_free(const struct gps_alloc *alloc) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, alloc->context);
    if (code == GPS_OK) {
        gps_ops
            ->synchronize(); /* as a free does; the close reports what is wrong with the context */
        code = close_counted(alloc->pointer, gps_ops->close_handle);
    }
    gps_scope_end(&scope);
    if (code != GPS_OK)
        gps_registry_add(alloc);
    return code;
}

static void purge_one(void *arg, const struct gps_import *import) {
    (void)arg;
    slot_clear(import);
}

void gps_import_purge(uint64_t context, uint32_t epoch) {
    gps_registry_purge_imports(context, epoch, purge_one, NULL);
}

void gps_import_reset(void) {
    memset((void *)&slots, 0, sizeof(slots)); /* the parent's array is lost, not freed: locks */
}
