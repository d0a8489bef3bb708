/*
 * store.c - the published directory with few and with many regions in it. Prints what publishing
 * and finding one cost with 10 and with 10,000 there, then "ready", and keeps them until its input
 * ends.
 *
 * usage: store DIRECTORY
 */
#include <stdio.h>
#include <string.h>

#include "directory/lease.h"
#include "directory/record.h"
#include "directory/region.h"
#include "sample.h"

enum { FEW = 10, MANY = 10000, SAMPLES = 200 };

static struct gps_store store;
static struct gps_lease lease;
static struct gps_id ids[MANY + SAMPLES];

static void print_median(const char *what, unsigned count, double samples[SAMPLES]) {
    printf("%s, %u there\t%.0f\n", what, count, median_of(samples, SAMPLES));
}

static int publish(unsigned number) {
    struct gps_region_record record = {.generation = number + 1,
                                       .backing = GPS_BACKING_IPC,
                                       .requested = 2 << 20,
                                       .extent = 2 << 20,
                                       .created = 1,
                                       .owner = lease.self};
    memcpy(record.handle, &number, sizeof(number));
    record.handle[8] = 1;
    record.id = gps_id_of_handle(record.handle);
    record.status.state = GPS_STATE_READY;
    gps_record_seal(&record);
    ids[number] = record.id;
    return gps_region_publish(&store, &record);
}

/* With `count` there: publishes some more and takes them away again, and reads ten that there are,
 * from among all, in turn. Always as many, and each more than once: what is asked is what the
 * others in the directory cost, not what a cold cache does. */
static int measure(unsigned count) {
    double publishing[SAMPLES], finding[SAMPLES];
    int failed = 0;
    for (unsigned i = 0; i < SAMPLES; i++) {
        struct gps_region_record record;
        const double start = now();
        failed |= publish(count + i % 10);
        const double middle = now();
        failed |= gps_region_read(&store, &ids[i % FEW * (count / FEW)], &record, NULL);
        finding[i] = now() - middle;
        publishing[i] = middle - start;
        failed |= gps_region_remove(&store, &ids[count + i % 10]);
    }
    print_median("publish", count, publishing);
    print_median("find", count, finding);
    return failed;
}

int main(int argc, char **argv) {
    struct gps_owner self;
    int failed = argc != 2 || gps_store_init(&store, argv[1], "default", true);
    gps_owner_self(&self);
    failed = failed || gps_lease_take(&store, &self, NULL, &lease);
    for (unsigned i = 0; !failed && i < FEW; i++)
        failed = publish(i);
    failed = failed || measure(FEW);
    for (unsigned i = FEW; !failed && i < MANY; i++)
        failed = publish(i);
    failed = failed || measure(MANY);
    if (failed) {
        fprintf(stderr, "store: %s\n",
                argc == 2 ? "it does not work there" : "usage: store DIRECTORY");
        return 1;
    }
    printf("ready\n");
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    for (unsigned i = 0; i < MANY; i++)
        gps_region_remove(&store, &ids[i]);
    gps_lease_drop(&lease);
    return 0;
}
