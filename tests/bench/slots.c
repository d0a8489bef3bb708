/*
 * slots.c - the search for users of a region beside a replica with many merged blocks. Prints what
 * one costs with 16, 4,096 and 16,384 blocks there: with a divider before them, as they have, and
 * without it, as versions before it have.
 *
 * usage: slots DIRECTORY
 */
#include "../common/system_headers.h"

#include "directory/lease.h"
#include "directory/orphans.h"
#include "directory/record.h"
#include "sample.h"

enum { SAMPLES = 300 };

static struct gps_store store;

static int put(struct gps_lease *lease, unsigned index, uint32_t via) {
    struct gps_slot slot = {.since = 1, .state = GPS_SLOT_OPEN, .via = via, .generation = 1};
    memcpy(&slot.region, &index, sizeof(index));
    gps_slot_seal(&slot);
    return gps_lease_write(lease, index, &slot);
}

/* Runs in the child: the replica, until it is killed. */
static void hold(unsigned blocks, bool divided, int ready) {
    struct gps_lease lease;
    struct gps_owner self;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    gps_owner_self(&self);
    int failed = gps_lease_take(&store, &self, NULL, &lease);
    failed = failed || (divided && put(&lease, GPS_DIVIDER, GPS_VIA_DIVIDER));
    for (unsigned i = 0; i < blocks && !failed; i++)
        failed = put(&lease, divided ? GPS_DIVIDER + 1 + i : i, GPS_VIA_MERGE);
    if (write(ready, &failed, sizeof(failed)) == sizeof(failed))
        pause();
    _exit(1);
}

static int measure(unsigned blocks, bool divided) {
    const struct gps_id region = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
    double samples[SAMPLES];
    struct gps_gc_counts counts;
    struct gps_user_counts seen;
    int ready[2], failed = 1;
    if (pipe(ready) != 0)
        return 1;
    const pid_t replica = fork();
    if (replica == 0)
        hold(blocks, divided, ready[1]);
    if (read(ready[0], &failed, sizeof(failed)) != sizeof(failed))
        failed = 1;
    for (unsigned i = 0; i < SAMPLES && !failed; i++) {
        const double start = now();
        failed = gps_users_and_caches(&store, &region, NULL, NULL, 0, &seen);
        samples[i] = now() - start;
    }
    kill(replica, SIGKILL);
    waitpid(replica, NULL, 0);
    failed = failed || gps_store_gc(&store, false, &counts);
    if (!failed)
        printf("users, %u blocks there, %s\t%.0f\n", blocks, divided ? "divided" : "not divided",
               median_of(samples, SAMPLES));
    return failed;
}

int main(int argc, char **argv) {
    static const unsigned blocks[] = {16, 4096, 16384};
    int failed = argc != 2 || gps_store_init(&store, argv[1], "default", true);
    for (unsigned i = 0; i < 6 && !failed; i++)
        failed = measure(blocks[i / 2], i % 2);
    if (failed)
        fprintf(stderr, "slots: %s\n",
                argc == 2 ? "it does not work there" : "usage: slots DIRECTORY");
    return failed != 0;
}
