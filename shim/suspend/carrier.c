#include "carrier.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "process/control_group.h"
#include "threads/thread.h"

#define STAGE (UINT64_C(4) << 20)
enum { MOST = 16, LOOK = 200 /* us */ };

struct work {
    const struct gps_load *loads;
    size_t count;
    enum gps_way way;
    uint64_t context;
    _Atomic size_t next;       /* the load that is taken next */
    _Atomic unsigned carriers; /* threads at work */
    _Atomic int code;          /* the first error of a copy */
};

/* A thread's two staging buffers: the driver copies one while the thread copies the other. */
struct hand {
    void *stage;
    uint64_t stream;
};
enum { HANDS = 2 };

static int hands_take(struct hand hands[HANDS]) {
    int code = GPS_OK;
    for (unsigned i = 0; i < HANDS && code == GPS_OK; i++) {
        code = gps_ops->stage_make(STAGE, &hands[i].stage);
        if (code == GPS_OK)
            code = gps_ops->stream_make(&hands[i].stream);
    }
    return code;
}

static void put_down(const struct hand hands[HANDS]) {
    for (unsigned i = 0; i < HANDS; i++) {
        if (hands[i].stream)
            gps_ops->stream_end(hands[i].stream);
        if (hands[i].stage)
            gps_ops->stage_end(hands[i].stage);
    }
}

/* A piece of a load; the last one may be shorter. */
static struct gps_load piece_of(const struct gps_load *load, uint64_t index) {
    const uint64_t at = index * STAGE, left = load->size - at;
    return (struct gps_load){.bytes = load->bytes ? load->bytes + at : NULL,
                             .address = load->address + at,
                             .size = left < STAGE ? left : STAGE,
                             .file = load->file,
                             .at = load->at + at};
}

/* Without a mapping of the file: page faults of many threads wait for each other. */
static int load_piece_put(const struct gps_load *piece, const void *stage) {
    if (piece->bytes)
        memcpy(piece->bytes, stage, piece->size);
    else if (pwrite(piece->file, stage, piece->size, (off_t)piece->at) != (ssize_t)piece->size)
        return GPS_OUT_OF_MEMORY;
    return GPS_OK;
}

static int load_piece_get(const struct gps_load *piece, void *stage) {
    if (piece->bytes)
        memcpy(stage, piece->bytes, piece->size);
    else if (pread(piece->file, stage, piece->size, (off_t)piece->at) != (ssize_t)piece->size)
        return GPS_OUT_OF_MEMORY;
    return GPS_OK;
}

static int hand_bring_out(const struct hand *hand, const struct gps_load *piece) {
    const int code = gps_ops->stream_wait(hand->stream);
    return code == GPS_OK ? load_piece_put(piece, hand->stage) : code;
}

static int hands_carry_out(const struct hand hands[HANDS], const struct gps_load *load) {
    const uint64_t count = (load->size + STAGE - 1) / STAGE;
    struct gps_load piece = {.size = 0}, before;
    int code = GPS_OK;
    for (uint64_t i = 0; i <= count && code == GPS_OK; i++) {
        const struct hand *hand = &hands[i % HANDS];
        before = piece;
        if (i < count) {
            piece = piece_of(load, i);
            code = gps_ops->download(hand->stage, piece.address, piece.size, hand->stream);
        }
        if (i && code == GPS_OK)
            code = hand_bring_out(&hands[(i - 1) % HANDS], &before);
    }
    return code;
}

static int carry_back(const struct hand hands[HANDS], const struct gps_load *load) {
    int code = GPS_OK;
    for (uint64_t i = 0; i * STAGE < load->size && code == GPS_OK; i++) {
        const struct hand *hand = &hands[i % HANDS];
        const struct gps_load piece = piece_of(load, i);
        code = gps_ops->stream_wait(hand->stream);
        if (code == GPS_OK)
            code = load_piece_get(&piece, hand->stage);
        if (code == GPS_OK)
            code = gps_ops->upload(piece.address, hand->stage, piece.size, hand->stream);
    }
    return code;
}

/* Waits for the copies under way in any case, because the stages are freed after it. */
static int carry_load(const struct hand hands[HANDS], enum gps_way way,
                      const struct gps_load *load) {
    int code = way == GPS_WAY_OUT ? hands_carry_out(hands, load) : carry_back(hands, load);
    for (unsigned i = 0; i < HANDS; i++) {
        const int ended = gps_ops->stream_wait(hands[i].stream);
        code = code == GPS_OK ? ended : code;
    }
    return code;
}

/* Returns the code that kept the thread from beginning; other threads go on without it. */
static int work_carry(struct work *work) {
    struct hand hands[HANDS] = {{.stage = NULL}};
    int first = GPS_OK;
    int code = hands_take(hands);
    const int begun = code;
    while (code == GPS_OK && atomic_load(&work->code) == GPS_OK) {
        const size_t next = atomic_fetch_add(&work->next, 1);
        if (next >= work->count)
            break;
        code = carry_load(hands, work->way, &work->loads[next]);
        if (code != GPS_OK)
            atomic_compare_exchange_strong(&work->code, &first, code);
    }
    put_down(hands);
    return begun;
}

static void *work_help(void *arg) {
    struct work *work = arg;
    GPS_SCOPE();
    if (gps_ops->enter(work->context) == GPS_OK) {
        (void)work_carry(work);
        gps_ops->leave();
    }
    atomic_fetch_sub(&work->carriers, 1);
    return NULL;
}

static void call_help(struct work *work) {
    const unsigned processors = gps_processors_left();
    unsigned wanted = processors < MOST ? processors : MOST;
    wanted = wanted < work->count ? wanted : (unsigned)work->count;
    for (unsigned i = 1; i < wanted; i++) {
        atomic_fetch_add(&work->carriers, 1);
        if (!gps_thread_start(work_help, work)) {
            atomic_fetch_sub(&work->carriers, 1);
            return;
        }
    }
}

/* Waits for all helpers: the work lies on this thread's stack. */
int gps_carry(const struct gps_load *loads, size_t count, enum gps_way way) {
    struct work work = {.loads = loads, .count = count, .way = way};
    int code = count ? gps_ops->context(&work.context) : GPS_OK;
    if (!count || code != GPS_OK)
        return code;
    call_help(&work);
    code = work_carry(&work);
    while (atomic_load(&work.carriers))
        usleep(LOOK);
    return work.code != GPS_OK ? work.code : work.next >= count ? GPS_OK : code;
}
