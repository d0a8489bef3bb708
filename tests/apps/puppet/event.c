/*
 * event.c - events, and work.
 */
#include "puppet.h"

MAKER(evcreate, u64, do_evcreate(&made, (unsigned)number(w[2])))

static int c_evget(char **w) {
    unsigned char handle[64] = {0};
    return handle_reply(do_evget(handle, value(w[1])), handle);
}

static int c_evopen(char **w) {
    unsigned char handle[64] = {0};
    u64 event = 0;
    from_hex(w[2], handle, sizeof(handle));
    const int code = do_evopen(&event, handle);
    return pointer_reply(w[1], code, event);
}

COMMAND(evdestroy, do_evdestroy(value(w[1])))
COMMAND(evrecord, do_evrecord(value(w[1])))
COMMAND(evquery, do_evquery(value(w[1])))
COMMAND(evsync, do_evsync(value(w[1])))

static void busy(void *ms) {
    nap((uintptr_t)ms);
}

COMMAND(busy, do_host(busy, (void *)(uintptr_t)number(w[1])))

const struct command event_commands[] = {
    {"evcreate", "NAME FLAGS", c_evcreate},
    {"evget", "NAME", c_evget},
    {"evopen", "NAME HANDLE", c_evopen},
    {"evdestroy", "NAME", c_evdestroy},
    {"evrecord", "NAME", c_evrecord},
    {"evquery", "NAME", c_evquery},
    {"evsync", "NAME", c_evsync},
    {"busy", "MILLISECONDS", c_busy},
    {0},
};
