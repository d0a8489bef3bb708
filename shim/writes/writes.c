#include "writes.h"

#include "driver/driver_ops.h"
#include "frames/exchange.h"
#include "ipc/refused_writes.h"
#include "learn/learner.h"
#include "merge/work.h"
#include "util/forgotten.h"

bool gps_writes_heard;
GPS_FORGOTTEN(gps_writes_heard);
static struct {
    bool has_ends;  /* a rule other than one that merges gives memory, whose end is checked */
    bool read_only; /* memory of a rule may be mapped read-only */
    bool audits;
} state;
GPS_FORGOTTEN(state);

/* Whether the rule gives the program memory of another process. Only the exporter's rule, perhaps
 * in another file, tells whether that is read-only. */
static bool gives_others_memory(const struct gps_rule *rule, const struct gps_program *program) {
    return rule->role != GPS_ROLE_MERGE &&
           gps_rule_is_for(rule, program->name, program->executable);
}

void gps_writes_start(const struct gps_config *config, const struct gps_program *program) {
    const bool shares = config->options.mode == GPS_MODE_SHARE;
    for (size_t i = 0; shares && i < config->rule_count; i++)
        state.has_ends |= gives_others_memory(&config->rules[i], program);
    state.read_only = shares && (state.has_ends || gps_merge_active);
    state.audits = config->options.mode == GPS_MODE_AUDIT;
    gps_writes_heard = state.read_only || state.audits || gps_gate_active || gps_frames_active;
    if (gps_learn_active)
        gps_write_hear_all();
}

/* The code of a refused write. A call that adds a node to a graph needs no context. */
static int refusal(const struct gps_write *write, int code) {
    const bool needs_context = write->ordered || !write->lasting;
    return code == GPS_INVALID_VALUE && needs_context ? gps_refusal_code() : code;
}

/* Modules that answer in place of the driver come before those that have an end. */
bool gps_writes_begin(const struct gps_write *write, struct gps_gate_pass *pass, int *code) {
    if ((state.has_ends && gps_refused_past_end(write, code)) ||
        (gps_gate_active && !gps_work_begin_write(write, pass, code))) {
        *code = refusal(write, *code);
        return false;
    }
    if (gps_frames_active)
        gps_frames_begin_write(write);
    if (gps_learn_active)
        gps_learn_begin_write(write);
    return true;
}

void gps_writes_end(const struct gps_write *write, const struct gps_gate_pass *pass, int code) {
    if (gps_learn_active)
        gps_learn_end_write(write);
    if (gps_frames_active)
        gps_frames_end_write(write, code);
    if (gps_gate_active)
        gps_work_end_write(write, pass, code);
    if (code != GPS_OK)
        gps_writes_refused(write, code);
}

void gps_writes_refused(const struct gps_write *write, int code) {
    if (state.read_only)
        gps_refused_read_only(write, code);
    if (state.audits)
        gps_refused_in_audit(write, code);
}
