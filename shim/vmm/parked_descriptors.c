/* parked_descriptors.c - see parked_descriptors.h. */
#include "parked_descriptors.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory/record.h"
#include "util/descriptor_passing.h"
#include "util/high_descriptor.h"
#include "util/lock.h"

/* To find one in a pair, those before it are taken out and sent again. So a pair holds few, however
 * many there are in all. */
enum { PAIRS = 1024, IN_PAIR = 24 };

struct pair {
    int in, out;
    ino_t in_inode, out_inode;
    unsigned count;
    struct gps_id ids[IN_PAIR]; /* in the order in which they come out */
};

static struct {
    GPS_LOCK(GPS_RANK_PARKED) lock;
    struct pair pairs[PAIRS];
    unsigned used;
} state;

/* --- a pair of sockets --- */

static bool is_socket(int fd, ino_t inode) {
    struct stat now;
    return fstat(fd, &now) == 0 && S_ISSOCK(now.st_mode) && now.st_ino == inode;
}

static void discard(struct pair *pair) {
    if (is_socket(pair->in, pair->in_inode))
        close(pair->in);
    if (is_socket(pair->out, pair->out_inode))
        close(pair->out);
    *pair = state.pairs[--state.used];
}

/* Programs close what is not theirs, and open something else under the number. */
static bool is_whole(struct pair *pair) {
    if (is_socket(pair->in, pair->in_inode) && is_socket(pair->out, pair->out_inode))
        return true;
    discard(pair);
    return false;
}

static ino_t inode_of(int fd) {
    struct stat now;
    return fstat(fd, &now) == 0 ? now.st_ino : 0;
}

static struct pair *make(void) {
    int ends[2];
    if (state.used == PAIRS ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return NULL;
    struct pair *pair = &state.pairs[state.used++];
    pair->in = gps_descriptor_move_high(ends[0]);
    pair->out = gps_descriptor_move_high(ends[1]);
    pair->in_inode = inode_of(pair->in);
    pair->out_inode = inode_of(pair->out);
    pair->count = 0;
    return pair;
}

/* --- one descriptor --- */

static bool put_into(struct pair *pair, const struct gps_id *id, int descriptor) {
    if (gps_passing_send(pair->in, id, sizeof(*id), descriptor) < 0)
        return false;
    pair->ids[pair->count++] = *id;
    return true;
}

/* Where the process has no free number the descriptor is lost, and -1 comes in its place. */
static int take_first(struct pair *pair) {
    struct gps_id id;
    int descriptor;
    gps_passing_receive(pair->out, &id, sizeof(id), &descriptor);
    memmove(&pair->ids[0], &pair->ids[1], --pair->count * sizeof(pair->ids[0]));
    return descriptor;
}

static void to_the_end(struct pair *pair) {
    const struct gps_id id = pair->ids[0];
    const int descriptor = take_first(pair);
    if (descriptor < 0)
        return;
    put_into(pair, &id, descriptor);
    close(descriptor);
}

static bool has(const struct pair *pair, const struct gps_id *id) {
    for (unsigned i = 0; i < pair->count; i++)
        if (gps_id_equal(&pair->ids[i], id))
            return true;
    return false;
}

/* Finds the pair that has it, and takes the descriptor out. NULL: no pair has it. */
static struct pair *take(const struct gps_id *id, int *descriptor) {
    unsigned at = 0;
    while (at < state.used && !has(&state.pairs[at], id))
        at++;
    struct pair *pair = &state.pairs[at];
    if (at == state.used || !is_whole(pair))
        return NULL;
    while (has(pair, id) && !gps_id_equal(&pair->ids[0], id))
        to_the_end(pair);
    *descriptor = has(pair, id) ? take_first(pair) : -1;
    return *descriptor >= 0 ? pair : NULL;
}

static struct pair *with_room(void) {
    for (unsigned i = state.used; i-- > 0;)
        if (state.pairs[i].count < IN_PAIR && is_whole(&state.pairs[i]))
            return &state.pairs[i];
    return make();
}

/* --- all of them --- */

void gps_parked_put(const struct gps_id *id, int descriptor) {
    GPS_LOCKED(&state.lock);
    struct pair *pair = with_room();
    if (pair)
        put_into(pair, id, descriptor);
}

bool gps_parked_get(const struct gps_id *id, int *descriptor) {
    GPS_LOCKED(&state.lock);
    struct pair *pair = take(id, descriptor);
    if (pair)
        put_into(pair, id, *descriptor);
    return pair != NULL;
}

void gps_parked_drop(const struct gps_id *id) {
    int descriptor;
    GPS_LOCKED(&state.lock);
    struct pair *pair = take(id, &descriptor);
    if (pair) {
        close(descriptor);
        if (!pair->count && state.used > 1) /* the last one stays: opens and closes alternate */
            discard(pair);
    }
}

/* The parent's sockets are closed here: while they are open, so are the descriptors in them. */
void gps_parked_reset(void) {
    memset((void *)&state.lock, 0, sizeof(state.lock));
    while (state.used)
        discard(&state.pairs[state.used - 1]);
}
