/* target.h - the processes that `suspend` and `resume` are about, and orders to them. */
#pragma once

#include "checkpoint.h"
#include "cli/tool.h"
#include "directory/room_lock.h"
#include "directory/view.h"

struct target {
    struct gps_store store;
    struct gps_owner owner;
    struct gps_answer_file answer; /* the last one */
    uint32_t pid;                  /* in this namespace; 0: not known */
    uint32_t flags;                /* enum gps_order_flag, of its orders */
    bool takes_orders;             /* else it was named with --force, and has no owner */
    char *name;                    /* "camera 4242" */
    const char *done;              /* of targets_how */
    int order;                     /* the descriptor of its order; -1: not open */
    struct gps_room_lock *locks;   /* room.h: the locks that this tool holds for it */
    size_t lock_count;
};

/* The options that `suspend` and `resume` share; NULL: not given. */
struct targets_how {
    const char *verb, *done;      /* "suspend", "suspended" */
    const char *within, *all_but; /* all_but: left out of all that take orders */
    bool force;                   /* a pid may be any process of this user's */
    bool wait;                    /* for room */
    bool alone;                   /* the driver is not called */
    bool keep_on_gpu;             /* memory that only suspended processes share */
    uint64_t timeout;             /* `within`, read by targets_each */
};
typedef bool target_fn(struct target *target, const struct targets_how *how);

/* Calls the function for the processes of the operands, each a pid or a program's name. Returns the
 * verb's exit status; failures were printed. */
int targets_each(const struct tool_args *args, struct targets_how *how, target_fn *fn);

/* Prints that the process was not suspended or resumed, at which step, and the meaning of the
 * driver's code. Returns false. */
bool target_fail(const struct target *target, const char *step, int code);
/* Gets the process's state from the driver. False: the reason was printed. */
bool target_state(const struct target *target, enum checkpoint_state *state);

/* Opens the order of the process, and holds its lock. False: the reason was printed. */
bool target_open(struct target *target);
void target_close(struct target *target);
/* Gives an order, and waits for the answer for `timeout` and a while. `freed`: for a KEEP. False:
 * the reason was printed. */
bool target_order(struct target *target, enum gps_order_ask ask, uint64_t timeout, uint64_t freed);

/* Why the process of a pid cannot be suspended at this moment, and what to do; "": it can. NULL: it
 * takes no orders, or does not answer. malloc'ed. */
char *target_obstacle(const char *pid);
