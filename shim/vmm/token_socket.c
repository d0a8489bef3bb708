#include "token_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "directory/file.h"
#include "directory/lease.h"
#include "keeper/store_socket.h"
#include "util/clock.h"
#include "util/descriptors.h"
#include "util/lock.h"
#include "util/program_signals.h"
#include "util/text.h"

enum { BACKLOG = 64 };

/* --- the address --- */

#define NAME_BYTES (GPS_PROC_NAME + 5 + sizeof(GPS_TOKEN_SOCKET))

static void token_socket_make_name(const struct gps_owner *owner, char name[NAME_BYTES]) {
    char process[GPS_PROC_NAME];
    struct gps_text out = gps_text_on(name, NAME_BYTES);
    gps_owner_format(owner, process);
    gps_text_strs(&out, ".tmp.", process);
    gps_text_str(&out, GPS_TOKEN_SOCKET);
}

static int token_socket_open(const struct gps_store *store, const struct gps_owner *owner,
                             gps_socket_call *call) {
    char name[NAME_BYTES];
    token_socket_make_name(owner, name);
    const int fd = gps_store_socket(store, name, call);
    return fd < 0 ? fd : gps_descriptor_move_high(fd);
}

int gps_token_socket_listen(const struct gps_store *store, const struct gps_owner *self) {
    const int fd = token_socket_open(store, self, bind);
    if (fd < 0 || listen(fd, BACKLOG) == 0)
        return fd;
    const int status = -errno;
    close(fd);
    return status;
}

void gps_token_socket_remove(const struct gps_store *store, const struct gps_owner *self) {
    char name[NAME_BYTES], path[GPS_FILE_PATH];
    token_socket_make_name(self, name);
    gps_file_path(store, name, NULL, path);
    unlink(path);
}

/* --- the messages --- */

bool gps_token_request_valid(const struct gps_token_request *request, long size) {
    return size == (long)sizeof(*request) && request->version == GPS_FORMAT_VERSION &&
           memcmp(request->magic, GPS_TOKEN_MAGIC, sizeof(request->magic)) == 0;
}

static bool token_range_is_within(uint64_t at, uint64_t size, uint64_t place, uint64_t place_size) {
    return size && at >= place && size <= place_size && at - place <= place_size - size;
}

/* Whether the blocks adjoin, from `at` on. */
static bool are_adjoining(const struct gps_token_reply *reply, uint64_t at) {
    for (uint32_t i = 0; i < reply->count; i++) {
        const struct gps_token_block *block = &reply->blocks[i];
        if (block->at != at || !token_range_is_within(at, block->size, reply->run, reply->run_size))
            return false;
        at += block->size;
    }
    return true;
}

/* Whether bytes are a reply to this request whose blocks lie where it says. */
static bool is_reply_valid(const struct gps_token_reply *reply, long size,
                           const struct gps_token_request *request) {
    if (size != (long)sizeof(*reply) || reply->version != GPS_FORMAT_VERSION ||
        memcmp(reply->magic, GPS_TOKEN_MAGIC, sizeof(reply->magic)) != 0 || reply->status > 0 ||
        !gps_id_equal(&reply->id, &request->id))
        return false;
    return reply->status < 0 ||
           (reply->count && reply->count <= GPS_TOKEN_BLOCKS && reply->place &&
            token_range_is_within(reply->run, reply->run_size, reply->place, reply->place_size) &&
            reply->place <= UINT64_MAX - reply->place_size &&
            are_adjoining(reply, request->from ? request->from : reply->run));
}

/* --- asking --- */

#define PATIENCE                                                                                   \
    (5 * GPS_SECOND)       /* a stopped process does not answer; one on a busy machine, late */
#define REFUSED GPS_SECOND /* a program may have closed the socket: another one follows then */
#define PAUSE   (GPS_SECOND / 500)
_Static_assert((int)GPS_TOKEN_BLOCKS == (int)GPS_PASSING_MOST, "all of a reply in one message");

void gps_token_line_begin(struct gps_token_line *line, const struct gps_store *store,
                          const struct gps_region_record *record) {
    *line = (struct gps_token_line){.store = store,
                                    .owner = record->owner,
                                    .id = record->id,
                                    .fd = -1,
                                    .deadline = gps_clock_monotonic() + PATIENCE};
}

void gps_token_line_end(struct gps_token_line *line) {
    if (line->fd >= 0)
        close(line->fd);
    line->fd = -1;
}

static uint64_t token_line_time_left(const struct gps_token_line *line) {
    const uint64_t now = gps_clock_monotonic();
    return now < line->deadline ? line->deadline - now : 0;
}

/* 0 or -ETIMEDOUT. */
static int pause_a_moment(const struct gps_token_line *line) {
    const uint64_t left = token_line_time_left(line);
    gps_program_signals_poll(NULL, left < PAUSE ? left : PAUSE);
    return left ? 0 : -ETIMEDOUT;
}

/* Whether another try may be answered. A process that ends closes its socket before its lease. */
static bool may_listen(int status, uint64_t since) {
    return status == -EAGAIN || ((status == -ENOENT || status == -ECONNREFUSED) &&
                                 gps_clock_monotonic() - since < REFUSED);
}

/* Connects, and tries again after -EAGAIN (the owner's queue of callers is full) and after a
 * refusal: a child of the owner may still have the socket, and does not answer. */
static int dial(struct gps_token_line *line) {
    const uint64_t begin = gps_clock_monotonic();
    int status = 0;
    while (status == 0 && line->fd < 0) {
        if (gps_lease_probe(line->store, &line->owner) == GPS_DEAD)
            return -ECONNREFUSED;
        line->fd = token_socket_open(line->store, &line->owner, connect);
        if (line->fd < 0)
            status = may_listen(line->fd, begin) ? pause_a_moment(line) : line->fd;
    }
    return status == -ENOENT ? -ECONNREFUSED : status;
}

/* -ECONNRESET: the exporter has closed the line. */
static int token_line_converse(struct gps_token_line *line, const struct gps_token_request *request,
                               struct gps_token_reply *reply, int *descriptors, unsigned *count) {
    int status = line->fd < 0 ? dial(line) : 0;
    if (status == 0)
        status = gps_passing_send(line->fd, request, sizeof(*request), -1);
    if (status == 0)
        status = gps_program_signals_await(line->fd, line->deadline);
    if (status < 0)
        return status;
    const ssize_t size = gps_passing_receive_many(line->fd, reply, sizeof(*reply), descriptors,
                                                  GPS_TOKEN_BLOCKS, count);
    if (size <= 0)
        return size < 0 ? (int)size : -ECONNRESET;
    const unsigned wanted = (unsigned)__builtin_popcountll(request->wanted);
    if (is_reply_valid(reply, size, request) && *count == (reply->status < 0 ? 0 : wanted))
        return reply->status;
    gps_passing_close(descriptors, *count);
    *count = 0;
    return -EBADMSG;
}

int gps_token_line_ask(struct gps_token_line *line, uint64_t from, uint64_t wanted,
                       struct gps_token_reply *reply, int descriptors[GPS_TOKEN_BLOCKS],
                       unsigned *count) {
    struct gps_token_request request = {.magic = GPS_TOKEN_MAGIC,
                                        .version = GPS_FORMAT_VERSION,
                                        .id = line->id,
                                        .from = from,
                                        .wanted = wanted};
    int status = 0, said = -EAGAIN;
    gps_lock_check(GPS_ACROSS_WAIT, "a wait for an exporter");
    while (status == 0) {
        *count = 0;
        said = token_line_converse(line, &request, reply, descriptors, count);
        if (said != -EAGAIN && said != -ECONNRESET && said != -EPIPE)
            break;
        if (said != -EAGAIN)
            gps_token_line_end(line);
        status = pause_a_moment(line);
    }
    return status < 0 ? status : said == -ESTALE ? -ENOENT : said;
}
