/* start.c - the process's first call; see lifecycle.h. */
#include <string.h>

#include "driver/scope.h"
#include "findings/reporter.h"
#include "frames/exchange.h"
#include "ipc/open_cache.h"
#include "learn/learner.h"
#include "lifecycle.h"
#include "log/channel.h"
#include "log/event_log.h"
#include "log/log.h"
#include "log/sink.h"
#include "log/wording.h"
#include "merge/allocation.h"
#include "process/call_counter.h"
#include "process/process.h"
#include "python/python.h"
#include "rules/rules.h"
#include "stack/stack.h"
#include "stack/trace.h"
#include "suspend/suspension.h"
#include "threads/thread.h"
#include "util/linker.h"
#include "util/program_signals.h"
#include "util/text.h"
#include "writes/writes.h"

static bool used; /* this image has begun before: after a fork its state is to be reset */

/* --- the configuration --- */

struct first_error {
    char text[512];
    unsigned count;
};

static void note_config_error(void *arg, const char *file, unsigned line, const char *message) {
    struct first_error *first = arg;
    if (first->count++)
        return;
    struct gps_text text = GPS_TEXT(first->text);
    gps_text_add(&text, line ? "%s:%u: " : "%s: ", file, line);
    gps_text_str(&text, message);
}

static void report_config(struct first_error *error) {
    if (error->count > 1) {
        const size_t length = strlen(error->text);
        struct gps_text text = gps_text_on(error->text + length, sizeof(error->text) - length);
        gps_text_add(&text, " (and %u more)", error->count - 1);
    }
    struct gps_report report = gps_report_new(GPS_CONFIG_ERROR);
    report.detail = error->count ? error->text : "out of memory";
    gps_report_send(&report);
}

/* --- the start --- */

static void forget_parent(void) {
    gps_parent_begin(gps_exit_registered());
    gps_fork_reset();
}

/* 0, or negative: an error is to be reported. */
static int process_load_config(struct first_error *error) {
    const int status = gps_process_load(note_config_error, error);
    const struct gps_program *program = gps_process_program();
    return status < 0 || gps_operations->has_blocks
               ? status
               : gps_config_check_plain(gps_process_config(), program->name, program->executable,
                                        note_config_error, error);
}

/* Whether the driver has the functions that we need. A library that stands in for it may have only
 * a few, because the program needs no more. */
static bool driver_is_complete(void) {
    const char *const lacking = gps_operations->lacks ? gps_operations->lacks() : NULL;
    char detail[128];
    struct gps_text text = GPS_TEXT(detail);
    if (!lacking)
        return true;
    gps_text_add(&text, "it has no %s", lacking);
    struct gps_report report = gps_report_new(GPS_DRIVER_INCOMPLETE);
    report.detail = detail;
    gps_report_send(&report);
    return false;
}

static enum gps_phase process_start(void) {
    if (used)
        forget_parent();
    used = true;
    gps_thread_note_main();
    struct first_error error = {.count = 0};
    const int status = process_load_config(&error);
    const struct gps_config *config = gps_process_config();
    const struct gps_program *program = gps_process_program();
    gps_wording_start(gps_operations->vendor, gps_operations->by_range);
    gps_channel_start(); /* a library's constructor may call before ours has run */
    gps_log_open(&config->options, gps_process_self(), program->arguments, program->rank);
    if (status == 0)
        gps_event_log_open(&config->options, gps_process_self(), gps_process_program()->arguments);
    gps_stack_start();
    gps_trace_start(config->options.stack_depth, config->options.mode == GPS_MODE_AUDIT,
                    gps_python_trace);
    if (status < 0)
        report_config(&error);
    if (status < 0 || config->options.mode == GPS_MODE_OFF || !driver_is_complete())
        return GPS_PHASE_OFF;
    if (config->options.mode == GPS_MODE_AUDIT) {
        gps_call_counter_start(program->name);
        gps_parent_watch_forks();
    }
    gps_merge_start(config, gps_process_program());
    gps_rules_start(config, gps_process_program());
    gps_open_cache_start(&config->options);
    gps_frames_start(config, gps_process_program());
    gps_learn_start(&config->options);
    gps_writes_start(config, gps_process_program());
    gps_suspension_start(&config->options);
    return GPS_PHASE_ON;
}

/* Waits for another thread's start, which reads files, without a lock and with signals let in. */
static void await_start(void) {
    while (gps_process_phase() == GPS_PHASE_STARTING)
        gps_program_signals_poll(NULL, 100000);
}

/* Only the thread that claims the start sets the operations: others may use them already. */
bool gps_lifecycle_begin(gps_attach_fn *attach) {
    gps_process_make_page();
    GPS_SCOPE();
    const struct gps_operations *const operations = attach();
    if (operations && gps_process_begin_start()) {
        gps_operations = operations;
        gps_process_set_phase(process_start());
    }
    await_start();
    const enum gps_phase phase = gps_process_phase();
    return phase == GPS_PHASE_ON || phase == GPS_PHASE_SUSPENDED;
}

/* As at_quick_exit, which would be linked in far from the constructor. */
int __cxa_at_quick_exit(void (*fn)(void *), void *object);
extern void *__dso_handle __attribute__((visibility("hidden")));

/* quick_exit's first handler runs last: the program's may wait for threads that call the driver. */
__attribute__((constructor)) static void on_load(void) {
    gps_sink_start();
    gps_channel_start();
    gps_linker_start();
    gps_thread_note_main();
    (void)__cxa_at_quick_exit((void (*)(void *))gps_lifecycle_end, &__dso_handle);
}
