/* lifecycle.c - see lifecycle.h. Owns the start, the fork and the end; everything else it only
 * calls. */
#include "lifecycle.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "audit/allocation_log.h"
#include "audit/leak.h"
#include "audit/reporter.h"
#include "directory/orphans.h"
#include "ipc/defer.h"
#include "ipc/export.h"
#include "ipc/teardown.h"
#include "log/log.h"
#include "process/ops.h"
#include "process/references.h"
#include "registry/registry.h"
#include "rules/rules.h"
#include "stack/call.h"
#include "stack/stack.h"
#include "stack/trace.h"
#include "upload/write.h"
#include "util/text.h"
#include "vmm/mapping.h"
#include "vmm/vmm_region.h"

static struct gps_life_page before_first_call;
struct gps_life_page *_Atomic gps_life_page = &before_first_call;

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(before_first_call.lock), "the page holds a mutex");

static struct {
    struct gps_config config;
    struct gps_owner self;
    struct gps_store store;
    struct gps_lease lease;
    bool lease_tried;
    bool lease_held;
    _Atomic bool store_ready; /* stays so at the end: other threads may still be asking */
    struct gps_party
        parent; /* the process we were forked from, where it had initialised the driver */
    bool used;  /* this image has begun before: after a fork there is something to forget */
    bool exit_registered; /* atexit handlers survive fork, so once is enough */
    _Atomic bool exiting;
} life;

static pthread_mutex_t *page_lock(struct gps_life_page *page) {
    return (pthread_mutex_t *)(void *)page->lock;
}

/* --- beginning --- */

static void on_fork_child(void) {
    struct gps_life_page *page = atomic_load(&gps_life_page);
    memset((void *)page, 0, sizeof(*page)); /* for kernels without MADV_WIPEONFORK */
}

static struct gps_life_page *make_page(void) {
    struct gps_life_page *page = atomic_load(&gps_life_page);
    if (page != &before_first_call)
        return page;
    void *fresh =
        mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) {
        pthread_atfork(NULL, NULL, on_fork_child);
        return page;
    }
    (void)madvise(fresh, sizeof(*page), MADV_WIPEONFORK);
    if (!atomic_compare_exchange_strong(&gps_life_page, &page, fresh)) {
        munmap(fresh, sizeof(*page));
        return page; /* another thread's */
    }
    pthread_atfork(NULL, NULL, on_fork_child);
    return fresh;
}

static void forget_parent(void) {
    if (life.lease_held)
        gps_lease_forget(&life.lease);
    life.lease_held = life.lease_tried = false;
    atomic_store(&life.store_ready, false);
    atomic_store(&life.exiting, false);
    gps_registry_reset();
    gps_references_reset();
    gps_trace_reset();
    gps_rules_reset();
    gps_write_reset();
    gps_defer_reset();
    gps_export_reset();
    gps_vmm_region_reset();
    gps_mapping_reset();
    gps_config_free(&life.config);
}

struct first_error {
    char text[512];
    unsigned count;
};

static void note_config_error(void *arg, const char *file, unsigned line, const char *message) {
    struct first_error *first = arg;
    if (first->count++)
        return;
    struct gps_text text = GPS_TEXT(first->text);
    gps_text_str(&text, file);
    if (line) {
        gps_text_str(&text, ":");
        gps_text_dec(&text, line);
    }
    gps_text_str(&text, ": ");
    gps_text_str(&text, message);
}

static void report_config(struct first_error *error) {
    if (error->count > 1) {
        const size_t length = strlen(error->text);
        struct gps_text text = gps_text_on(error->text + length, sizeof(error->text) - length);
        gps_text_str(&text, " (and ");
        gps_text_dec(&text, error->count - 1);
        gps_text_str(&text, " more)");
    }
    struct gps_report report = gps_report_new(GPS_CONFIG_ERROR);
    report.detail = error->count ? error->text : "out of memory";
    gps_report_send(&report);
}

static enum gps_life_state start(void) {
    if (life.used) {
        if (life.exit_registered)
            life.parent = (struct gps_party){.owner = life.self};
        forget_parent();
    }
    life.used = true;
    gps_owner_self(&life.self);
    struct first_error error = {.count = 0};
    const int status = gps_config_load(&life.config, note_config_error, &error);
    gps_log_open(&life.config.options, &life.self);
    gps_stack_start();
    gps_trace_start(life.config.options.stack_depth, life.config.options.mode == GPS_MODE_AUDIT);
    if (status < 0) {
        report_config(&error);
        return GPS_LIFE_OFF;
    }
    if (life.config.options.mode == GPS_MODE_OFF)
        return GPS_LIFE_OFF;
    gps_rules_start(&life.config, &life.self);
    gps_write_start(&life.config, &life.self);
    gps_allocation_log_start(&life.config.options);
    return GPS_LIFE_ON;
}

bool gps_life_begin(void) {
    struct gps_life_page *page = make_page();
    struct gps_scope scope;
    gps_scope_begin(&scope);
    const bool attached = gps_ops_attach(); /* takes the loader's lock: not under ours */
    pthread_mutex_lock(page_lock(page));
    if (attached && atomic_load(&page->state) == GPS_LIFE_NEW)
        atomic_store_explicit(&page->state, (int)start(), memory_order_release);
    const bool on = atomic_load(&page->state) == GPS_LIFE_ON;
    pthread_mutex_unlock(page_lock(page));
    gps_scope_end(&scope);
    return on;
}

/* --- what the others ask --- */

const struct gps_config *gps_life_config(void) {
    return &life.config;
}

const struct gps_owner *gps_life_self(void) {
    return &life.self;
}

const struct gps_store *gps_life_store(void) {
    return life.store_ready ? &life.store : NULL;
}

static int take_lease(void) {
    char root[GPS_STORE_PATH];
    const char *dir = getenv("GPUSHARE_DIR"), *name_space = getenv("GPUSHARE_NAMESPACE");
    if (!dir || !*dir) {
        gps_store_default_root(root, sizeof(root));
        dir = root;
    }
    int status =
        gps_store_init(&life.store, dir, name_space && *name_space ? name_space : "default", true);
    return status < 0 ? status : gps_lease_take(&life.store, &life.self, &life.lease);
}

struct gps_lease *gps_life_lease(void) {
    struct gps_life_page *page = atomic_load(&gps_life_page);
    int status = 0;
    pthread_mutex_lock(page_lock(page));
    if (!life.lease_tried) {
        life.lease_tried = true;
        status = take_lease();
        life.lease_held = status == 0;
        atomic_store(&life.store_ready, life.lease_held);
    }
    const bool held = life.lease_held;
    pthread_mutex_unlock(page_lock(page));
    if (status < 0)
        gps_report_store(status, "the directory cannot be used");
    return held ? &life.lease : NULL;
}

/* --- the end --- */

void gps_life_not_initialized(void) {
    struct gps_scope scope;
    if (!gps_life_enter() || !life.parent.owner.pid)
        return;
    gps_scope_begin(&scope);
    struct gps_report report = gps_report_on(GPS_ASK_FORKED, GPS_KNOWN_NOTHING);
    report.others = &life.parent;
    report.other_count = 1;
    gps_report_send(&report);
    gps_scope_end(&scope);
}

bool gps_life_exiting(void) {
    return atomic_load_explicit(&life.exiting, memory_order_relaxed);
}

static bool is_on(void) {
    return atomic_load(&atomic_load(&gps_life_page)->state) == GPS_LIFE_ON;
}

/* A signal handler that ends the process may have interrupted a wrapper of ours, locks and all. */
static bool is_interrupted(void) {
    return gps_call.inside != 0;
}

static void on_exit_handler(void) {
    if (!is_on() || is_interrupted() || atomic_exchange(&life.exiting, true))
        return;
    struct gps_scope scope;
    gps_scope_begin(&scope);
    gps_teardown_exit(&scope.signals);
    gps_scope_end(&scope);
}

void gps_life_driver_ready(void) {
    struct gps_life_page *page = atomic_load(&gps_life_page);
    pthread_mutex_lock(page_lock(page));
    if (!life.exit_registered)
        life.exit_registered = atexit(on_exit_handler) == 0;
    pthread_mutex_unlock(page_lock(page));
}

static bool is_other_alive(void *found, const struct gps_proc *proc) {
    *(bool *)found = proc->alive && !gps_owner_equal(&proc->header.owner, &life.self);
    return !*(bool *)found;
}

static bool is_last_process(void) {
    bool other = false;
    return gps_proc_each(&life.store, is_other_alive, &other) == 0 && !other;
}

/* What others may still ask about stays until the last process leaves; then the directory is empty.
 */
static void unpublish(void) {
    if (!life.lease_held) {
        gps_leak_report_end();
        return;
    }
    gps_teardown_unpublish(is_last_process());
    gps_lease_drop(&life.lease);
    life.lease_held = false;
    struct gps_gc_counts counts;
    if (is_last_process())
        gps_store_gc(&life.store, false, &counts);
}

__attribute__((destructor)) static void on_unload(void) {
    if (!is_on() || is_interrupted())
        return;
    struct gps_scope scope;
    gps_scope_begin(&scope);
    if (atomic_exchange(&atomic_load(&gps_life_page)->state, GPS_LIFE_ENDED) == GPS_LIFE_ON) {
        unpublish();
        gps_log_summary();
    }
    gps_scope_end(&scope);
}

/* A crash handler on a stack of its own is in no state for all of this; that stack is small, too.
 * The kernel drops the lease, and whoever comes next does the rest. */
static bool in_crash_handler(void) {
    stack_t stack;
    return sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK);
}

void gps_life_end(void) {
    /* A child made by vfork borrows this memory: its _exit is not the end of this process. */
    if (!is_on() || is_interrupted() || life.self.pid != (uint32_t)getpid() || in_crash_handler())
        return;
    on_exit_handler();
    on_unload();
}

__attribute__((constructor)) static void on_load(void) {
    gps_log_start();
}
