#include "keeper_client.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory/file.h"
#include "directory/leader_lock.h"
#include "directory/name.h"
#include "directory/region.h"
#include "keeper_protocol.h"
#include "store_socket.h"
#include "util/clock.h"
#include "util/descriptors.h"
#include "util/forgotten.h"
#include "util/lock.h"
#include "util/program_signals.h"
#include "util/text.h"

#define PAUSE_FIRST   GPS_MS
#define PAUSE_LONGEST (20 * GPS_MS)
#define START_EVERY   (500 * GPS_MS)  /* a keeper that starts slowly is not started twice */
#define START_WITHIN  (2000 * GPS_MS) /* a keeper that was started listens */
#define COARSE        (20 * GPS_MS)   /* times of files */
#define REPLY_WITHIN  (200 * GPS_MS)  /* a keeper that does not reply for so long is unresponsive */
#define SILENT_FOR    (2 * GPS_SECOND) /* longer than between the pings of a thread of ours */

/* When the last call ended to which the keeper did not reply; 0: it has replied since. No other
 * call waits for the keeper for a while. A ping in vain prolongs that for all calls; where none is
 * made, as while the process is suspended, a call tries again. */
static _Atomic uint64_t silent;
GPS_FORGOTTEN(silent);
/* A deposit ended because no descriptor could be sent, and none was sent since. It does not concern
 * a get: the keeper's limit may be higher, and an open of a token has no other way. */
static _Atomic bool crowded;
GPS_FORGOTTEN(crowded);

/* The descriptors of this process that are on their way to the keeper: since when each is, or 0.
 * They are few, because the kernel counts those of all processes of the user. A handler of the
 * program's may leave a wait by longjmp: an entry older than any wait counts no more. */
enum { ON_THEIR_WAY = 64 };
static _Atomic uint64_t on_their_way[ON_THEIR_WAY];
GPS_FORGOTTEN(on_their_way);

/* The state of one call. */
struct exchange {
    const struct gps_store *store;
    struct gps_keeper_request request;
    struct gps_keeper_reply reply;
    bool may_start;      /* whether to start a keeper if there is none */
    int give;            /* the descriptor to send, or -1 */
    int taken;           /* the descriptor received, or -1 */
    uint64_t deadline;   /* CLOCK_MONOTONIC */
    uint64_t started;    /* when this call last started a keeper; 0: never */
    uint64_t start_time; /* when it first did so, by CLOCK_REALTIME */
    uint64_t answered; /* when the keeper last replied or appeared; at first when the call began */
    bool patient;   /* it waits for a silent keeper until the deadline, though other calls have in
                       vain */
    bool absent;    /* no keeper listened at the last attempt */
    bool sent;      /* a keeper may have got the request */
    bool crowded;   /* no descriptor could be passed at the last attempt that had an end */
    uint64_t pause; /* before the next attempt */
};

/* How long the call may wait now: until its deadline, or until the keeper has not replied for
 * `within` (CLOCK_MONOTONIC). */
static uint64_t end_of_wait(const struct exchange *exchange, uint64_t within) {
    const uint64_t until = exchange->answered + within;
    return until < exchange->deadline && !exchange->patient ? until : exchange->deadline;
}

static uint64_t exchange_time_left(const struct exchange *exchange, uint64_t within) {
    const uint64_t now = gps_clock_monotonic(), end = end_of_wait(exchange, within);
    return now < end ? end - now : 0;
}

static void exchange_begin(struct exchange *exchange, const struct gps_store *store,
                           const struct gps_owner *self, enum gps_keeper_ask ask,
                           uint64_t timeout) {
    const uint64_t begin = gps_clock_monotonic();
    memset(exchange, 0, sizeof(*exchange));
    exchange->store = store;
    exchange->request.ask = (uint32_t)ask;
    exchange->request.sender = *self;
    exchange->give = -1;
    exchange->taken = -1;
    exchange->deadline = timeout > UINT64_MAX - begin ? UINT64_MAX : begin + timeout;
    exchange->answered = begin;
    exchange->pause = PAUSE_FIRST;
}

/* --- one connection --- */

int gps_keeper_connect(const struct gps_store *store) {
    return gps_store_socket(store, GPS_KEEPER_SOCKET, connect);
}

static bool brings_descriptor(const struct exchange *exchange) {
    return exchange->request.ask == GPS_KEEPER_GET || exchange->request.ask == GPS_KEEPER_RELOAD;
}

/* Takes the reply. -ECONNRESET: the keeper has closed the connection instead. */
static int exchange_take_reply(struct exchange *exchange, int fd) {
    struct gps_keeper_reply reply;
    int descriptor;
    ssize_t n = gps_passing_receive(fd, &reply, sizeof(reply), &descriptor);
    if (n <= 0)
        return n < 0 ? (int)n : -ECONNRESET;
    if (gps_reply_check(&reply, (size_t)n) != NULL ||
        (descriptor >= 0) != (brings_descriptor(exchange) && reply.status == 0)) {
        if (descriptor >= 0)
            close(descriptor);
        return -EBADMSG;
    }
    exchange->reply = reply;
    exchange->taken = descriptor;
    return 0;
}

/* A free entry, or one that counts no more. NULL: all are in use. */
static _Atomic uint64_t *find_way(uint64_t now) {
    for (unsigned i = 0; i < ON_THEIR_WAY; i++) {
        uint64_t since = atomic_load(&on_their_way[i]);
        if ((!since || now - since > GPS_KEEPER_WAIT) &&
            atomic_compare_exchange_strong(&on_their_way[i], &since, now))
            return &on_their_way[i];
    }
    return NULL;
}

/* Sends the request and waits for the reply. */
static int exchange_converse(struct exchange *exchange, int fd) {
    int status =
        gps_passing_send(fd, &exchange->request, sizeof(exchange->request), exchange->give);
    exchange->sent |= status == 0;
    if (status == 0)
        status = gps_program_signals_await(fd, end_of_wait(exchange, REPLY_WITHIN));
    return status == 0 ? exchange_take_reply(exchange, fd) : status;
}

static int ask_once(struct exchange *exchange) {
    int fd = gps_keeper_connect(exchange->store);
    if (fd < 0)
        return fd;
    if (exchange->absent)
        exchange->answered = gps_clock_monotonic();
    exchange->absent = false;
    int status = -EAGAIN; /* a descriptor on its way arrives soon */
    uint64_t since = gps_clock_monotonic();
    _Atomic uint64_t *way = exchange->give >= 0 ? find_way(since) : NULL;
    if (way || exchange->give < 0)
        status = exchange_converse(exchange, fd);
    if (way)
        atomic_compare_exchange_strong(way, &since, 0);
    close(fd);
    return status;
}

/* --- until there is an answer --- */

/* Whether the request is worth repeating: the keeper died, or was too busy. */
static bool is_transient(int status) {
    return status == -EAGAIN || status == -ECONNRESET || status == -EPIPE ||
           status == -ETOOMANYREFS;
}

/* Whether no descriptor could be passed: by us, or by a keeper, which answers -EAGAIN then. */
static bool is_crowded(const struct exchange *exchange, int status) {
    if (status == 0)
        return brings_descriptor(exchange) && gps_passing_is_crowded();
    return status == -ETOOMANYREFS;
}

/* The error of a call whose time is over: a keeper that got a descriptor may have kept it. */
static int time_out(const struct exchange *exchange) {
    const bool given = exchange->give >= 0 && exchange->sent;
    return exchange->crowded && !given ? -ETOOMANYREFS : -ETIMEDOUT;
}

/* How long to wait for a keeper. While the lock is held and there is no socket, a keeper is
 * starting; but if it was taken before this call started one, another process occupies it. */
static uint64_t reply_within(const struct exchange *exchange) {
    if (!exchange->started)
        return REPLY_WITHIN;
    const uint64_t taken = gps_leader_lock_since(exchange->store);
    return !taken || taken + COARSE >= exchange->start_time ? START_WITHIN : REPLY_WITHIN;
}

/* False when there is no time left. */
static bool pause_for_retry(struct exchange *exchange) {
    uint64_t left = exchange_time_left(exchange, reply_within(exchange));
    if (left == 0)
        return false;
    if (left > exchange->pause)
        left = exchange->pause;
    gps_program_signals_poll(NULL, left);
    exchange->pause = 2 * exchange->pause < PAUSE_LONGEST ? 2 * exchange->pause : PAUSE_LONGEST;
    return true;
}

/* Starts a keeper, since none listens. 0: the request is to be repeated. */
static int start_one(struct exchange *exchange) {
    const uint64_t time = gps_clock_monotonic();
    if (!exchange->may_start)
        return -ECONNREFUSED;
    if (exchange->started != 0 && time - exchange->started < START_EVERY)
        return 0;
    const uint64_t begin = gps_clock_now();
    int status = gps_spawn_keeper(exchange->store);
    if (!exchange->started)
        exchange->start_time = begin;
    exchange->started = time;
    return status;
}

/* The status of the reply, or the error that prevented one. -ECONNREFUSED: there is no keeper. */
static int repeat(struct exchange *exchange) {
    for (;;) {
        int status = ask_once(exchange);
        if (status == 0 || status == -ECONNRESET)
            exchange->answered = gps_clock_monotonic();
        if (status == 0 && exchange->reply.status != -EAGAIN)
            return exchange->reply.status;
        exchange->absent = status == -ENOENT || status == -ECONNREFUSED;
        if (exchange->absent) {
            status = start_one(exchange);
            if (status != 0)
                return status;
        } else if (status != 0 && !is_transient(status)) {
            return status == -ETIMEDOUT ? time_out(exchange) : status;
        }
        exchange->crowded = !exchange->absent && is_crowded(exchange, status);
        if ((exchange->crowded && exchange->give >= 0 && atomic_load(&crowded)) ||
            !pause_for_retry(exchange))
            return time_out(exchange);
    }
}

bool gps_keeper_is_unresponsive(void) {
    const uint64_t since = atomic_load(&silent);
    return since && gps_clock_monotonic() - since < SILENT_FOR;
}

/* An unresponsive keeper is waited for once: later calls, of any thread, act as without one. */
static int exchange_ask(struct exchange *exchange) {
    if (gps_keeper_is_unresponsive() && !exchange->patient &&
        exchange->request.ask != GPS_KEEPER_PING)
        return -ETIMEDOUT;
    gps_lock_check(GPS_ACROSS_WAIT, "a wait for the keeper");
    gps_request_seal(&exchange->request);
    const int status = repeat(exchange);
    if (exchange->give >= 0 && (exchange->sent || status == -ETOOMANYREFS))
        atomic_store(&crowded, !exchange->sent);
    if (status != -ETIMEDOUT && status != -ETOOMANYREFS)
        atomic_store(&silent, 0);
    else if (status == -ETIMEDOUT && exchange_time_left(exchange, REPLY_WITHIN) == 0 &&
             gps_clock_monotonic() < exchange->deadline)
        atomic_store(&silent, gps_clock_monotonic());
    return status;
}

/* --- the calls --- */

/* Whether a newly started keeper would adopt the region. */
static bool region_is_recorded(const struct gps_store *store, const struct gps_id *id) {
    struct gps_region_record record;
    return gps_region_read(store, id, &record, NULL) == 0 && record.backing == GPS_BACKING_VMM;
}

/* Without a keeper the region does not exist. */
static int no_keeper_as_missing(int status) {
    return status == -ECONNREFUSED ? -ENOENT : status;
}

int gps_keeper_deposit(const struct gps_store *store, const struct gps_region_record *record,
                       const struct gps_owner *self, int descriptor, uint64_t timeout) {
    struct exchange exchange;
    exchange_begin(&exchange, store, self, GPS_KEEPER_DEPOSIT, timeout);
    exchange.request.record = *record;
    exchange.give = descriptor;
    exchange.may_start = true;
    const int status = exchange_ask(&exchange);
    /* the keeper's own limit, not ours */
    return status == -EMFILE && exchange.reply.status == status ? -ENOBUFS : status;
}

static int keeper_get_descriptor(const struct gps_store *store, const struct gps_id *id,
                                 const struct gps_owner *self, uint64_t timeout, bool patiently,
                                 int *descriptor) {
    struct exchange exchange;
    exchange_begin(&exchange, store, self, GPS_KEEPER_GET, timeout);
    exchange.patient = patiently;
    exchange.request.record.id = *id;
    exchange.may_start = region_is_recorded(store, id);
    int status = exchange_ask(&exchange);
    if (status == 0)
        *descriptor = exchange.taken;
    return no_keeper_as_missing(status);
}

int gps_keeper_get(const struct gps_store *store, const struct gps_id *id,
                   const struct gps_owner *self, uint64_t timeout, int *descriptor) {
    return keeper_get_descriptor(store, id, self, timeout, false, descriptor);
}

int gps_keeper_get_patiently(const struct gps_store *store, const struct gps_id *id,
                             const struct gps_owner *self, uint64_t timeout, int *descriptor) {
    return keeper_get_descriptor(store, id, self, timeout, true, descriptor);
}

int gps_keeper_released(const struct gps_store *store, const struct gps_id *id,
                        const struct gps_owner *self, uint64_t timeout) {
    struct exchange exchange;
    exchange_begin(&exchange, store, self, GPS_KEEPER_RELEASED, timeout);
    exchange.request.record.id = *id;
    return no_keeper_as_missing(exchange_ask(&exchange));
}

int gps_keeper_drop(const struct gps_store *store, const char *name, const struct gps_id *id,
                    const struct gps_owner *self, uint64_t timeout) {
    struct exchange exchange;
    exchange_begin(&exchange, store, self, GPS_KEEPER_DROP, timeout);
    if (!name) {
        exchange.request.record.id = *id;
        exchange.may_start = region_is_recorded(store, id);
    } else if (!gps_name_valid(name)) {
        return -EINVAL;
    } else {
        struct gps_name_target target;
        struct gps_text out = GPS_TEXT(exchange.request.record.name);
        gps_text_str(&out, name);
        exchange.may_start = gps_name_resolve(store, name, &target) == 0 &&
                             target.kind == GPS_NAME_REGION &&
                             region_is_recorded(store, &target.region);
    }
    return no_keeper_as_missing(exchange_ask(&exchange));
}

int gps_keeper_ping(const struct gps_store *store, const struct gps_owner *self, uint64_t timeout,
                    struct gps_owner *keeper, uint64_t *regions) {
    struct exchange exchange;
    exchange_begin(&exchange, store, self, GPS_KEEPER_PING, timeout);
    int status = exchange_ask(&exchange);
    if (status == 0) {
        *keeper = exchange.reply.keeper;
        *regions = exchange.reply.regions;
    }
    return no_keeper_as_missing(status);
}

int gps_keeper_reclaim(const struct gps_store *store, const struct gps_owner *self,
                       uint64_t timeout) {
    struct exchange exchange;
    exchange_begin(&exchange, store, self, GPS_KEEPER_RECLAIM, timeout);
    return no_keeper_as_missing(exchange_ask(&exchange));
}

int gps_keeper_offload(const struct gps_store *store, const struct gps_id *id,
                       const struct gps_owner *self, int bytes, uint64_t timeout) {
    struct exchange exchange;
    exchange_begin(&exchange, store, self, GPS_KEEPER_OFFLOAD, timeout);
    exchange.request.record.id = *id;
    exchange.give = bytes;
    return no_keeper_as_missing(exchange_ask(&exchange));
}

int gps_keeper_reload(const struct gps_store *store, const struct gps_id *id,
                      const struct gps_owner *self, uint64_t keep, uint64_t timeout, int *bytes) {
    struct exchange exchange;
    exchange_begin(&exchange, store, self, GPS_KEEPER_RELOAD, timeout);
    exchange.request.record.id = *id;
    exchange.request.record.extent = keep;
    const int status = exchange_ask(&exchange);
    if (status == 0)
        *bytes = exchange.taken;
    return no_keeper_as_missing(status);
}

uint64_t gps_keeper_socket(const struct gps_store *store) {
    char path[GPS_STORE_PATH + 16];
    struct gps_text text = GPS_TEXT(path);
    struct stat found;
    gps_text_strs(&text, store->path, "/" GPS_KEEPER_SOCKET);
    return stat(path, &found) == 0 ? found.st_ino : 0;
}

uint64_t gps_keeper_other(const struct gps_store *store, const struct gps_owner *self,
                          uint64_t known) {
    const uint64_t socket = gps_keeper_socket(store);
    struct gps_owner keeper;
    uint64_t regions;
    if (gps_keeper_is_unresponsive())
        gps_keeper_ping(store, self, GPS_KEEPER_WAIT, &keeper, &regions);
    return socket != known && !gps_keeper_is_unresponsive() ? socket : 0;
}
