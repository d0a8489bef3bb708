/*
 * keeper_abuse.c - a keeper among processes that deposit, open and close without a pause, some that
 * send it rubbish or say nothing, and one that kills or stops it and its stand-by again and again.
 *
 * usage: keeper_abuse GPUSHARE [SECONDS]
 *
 * Three quarters of the time one of them, or both, are killed every 20 to 200 ms, then they are
 * left alone, when the keeper must not grow. Judged: no region is ever lost while its creator holds
 * it, each descriptor is the one that was deposited, the keeper has as many descriptors as regions
 * and a few, and in the end it goes and leaves nothing behind. Prints a table; exit status 1 when
 * something was wrong.
 */
#include "../common/system_headers.h"

#include <ftw.h>
#include <sys/un.h>

#include "directory/lease.h"
#include "directory/orphans.h"
#include "directory/processes.h"
#include "keeper/keeper_client.h"
#include "util/descriptors.h"

#define WORKERS  8
#define OWN      4 /* regions of each */
#define ROWDIES  2
#define OVERHEAD 12 /* descriptors of a keeper besides regions */
#define SECOND   UINT64_C(1000000000)
#define TIMEOUT  (10 * SECOND)
#define SLICE    (SECOND / 50)

struct shared {
    atomic_ulong deposits, opens, rubbish, kills, other_kills, lost, late, wrong, errors;
    atomic_int ready;
    atomic_bool over;
};

static struct {
    struct gps_store store;
    struct shared *shared;
} abuse;

static void nap(unsigned milliseconds) {
    const struct timespec time = {.tv_nsec = (long)milliseconds * 1000000};
    nanosleep(&time, NULL);
}

static void fill(struct gps_region_record *record, const struct gps_owner *creator, unsigned seed) {
    memset(record, 0, sizeof *record);
    memset(record->handle, 0x77, sizeof record->handle);
    memcpy(record->handle, &seed, sizeof seed);
    record->id = gps_id_of_handle(record->handle);
    record->generation = 1;
    record->backing = GPS_BACKING_VMM;
    record->requested = record->extent = 2 << 20;
    record->created = 1;
    record->owner = record->creator = *creator;
    record->keep = GPS_KEEP_USERS;
    record->status.state = GPS_STATE_READY;
    gps_record_seal(record);
}

/* --- those who behave --- */

struct worker {
    struct gps_owner self;
    struct gps_lease lease;
    struct gps_region_record own[OWN];
    int memory[OWN];
    unsigned number;
};

static void write_slot(struct worker *worker, unsigned index, const struct gps_id *id, uint32_t via,
                       uint32_t state) {
    struct gps_slot slot = {.state = state, .via = via, .generation = 1};

    if (id != NULL) {
        slot.region = *id;
        gps_slot_seal(&slot);
    } else {
        memset(&slot, 0, sizeof slot);
    }
    if (gps_lease_write(&worker->lease, index, &slot) != 0)
        atomic_fetch_add(&abuse.shared->errors, 1);
}

static void count(int rc) {
    struct shared *shared = abuse.shared;
    if (rc != 0 && rc != -EEXIST)
        atomic_fetch_add(rc == -ENOENT      ? &shared->lost
                         : rc == -ETIMEDOUT ? &shared->late
                                            : &shared->errors,
                         1);
}

static void deposit(struct worker *worker, unsigned i) {
    count(gps_keeper_deposit(&abuse.store, &worker->own[i], &worker->self, worker->memory[i],
                             TIMEOUT));
    atomic_fetch_add(&abuse.shared->deposits, 1);
}

static void begin(struct worker *worker) {
    gps_owner_self(&worker->self);
    if (gps_lease_take(&abuse.store, &worker->self, NULL, &worker->lease) != 0)
        exit(2);
    for (unsigned i = 0; i < OWN; i++) {
        const unsigned seed = worker->number * OWN + i;
        fill(&worker->own[i], &worker->self, seed);
        worker->memory[i] = memfd_create("region", MFD_CLOEXEC);
        if (write(worker->memory[i], &seed, sizeof seed) != (ssize_t)sizeof seed)
            exit(2);
        write_slot(worker, i, &worker->own[i].id, GPS_VIA_CREATOR, GPS_SLOT_OPEN);
        deposit(worker, i);
    }
    atomic_fetch_add(&abuse.shared->ready, 1);
}

/* Who waits for another's region deposits its own meanwhile: the other may wait for that. */
static int get(struct worker *worker, const struct gps_id *id, int *fd) {
    int rc = -ETIMEDOUT;
    for (unsigned i = 0; i < TIMEOUT / SLICE && rc == -ETIMEDOUT; i++) {
        rc = gps_keeper_get(&abuse.store, id, &worker->self, SLICE, fd);
        for (unsigned own = 0; own < OWN && rc == -ETIMEDOUT; own++)
            deposit(worker, own);
    }
    return rc;
}

static void open_another(struct worker *worker, unsigned seed) {
    struct gps_region_record record;
    unsigned found = ~0u;
    int fd, rc;
    fill(&record, &worker->self, seed);
    write_slot(worker, OWN, &record.id, GPS_VIA_RULE, GPS_SLOT_INTENT);
    rc = get(worker, &record.id, &fd);
    count(rc);
    if (rc == 0) {
        write_slot(worker, OWN, &record.id, GPS_VIA_RULE, GPS_SLOT_OPEN);
        if (pread(fd, &found, sizeof found, 0) != (ssize_t)sizeof found || found != seed)
            atomic_fetch_add(&abuse.shared->wrong, 1);
        close(fd);
        atomic_fetch_add(&abuse.shared->opens, 1);
    }
    write_slot(worker, OWN, NULL, 0, 0);
    gps_keeper_released(&abuse.store, &record.id, &worker->self, 0);
}

static int work(unsigned number) {
    static struct worker worker;
    unsigned at = number;
    worker.number = number;
    srand(number + 1);
    begin(&worker);
    while (atomic_load(&abuse.shared->ready) < WORKERS)
        nap(1);
    while (!atomic_load(&abuse.shared->over)) {
        deposit(&worker, at++ % OWN);
        open_another(&worker, (unsigned)rand() % (WORKERS * OWN));
    }
    /* The others may still wait for what is ours. */
    atomic_fetch_add(&abuse.shared->ready, 1);
    while (atomic_load(&abuse.shared->ready) < 2 * WORKERS) {
        deposit(&worker, at++ % OWN);
        nap(1);
    }
    gps_lease_drop(&worker.lease);
    return 0;
}

/* --- those who do not --- */

static int dial(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (strlen(abuse.store.path) < sizeof address.sun_path - sizeof "/keeper")
        stpcpy(stpcpy(address.sun_path, abuse.store.path), "/keeper");
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void send_rubbish(int fd) {
    static unsigned char bytes[2048];
    const size_t size = rand() % 3 == 0 ? 600 : (size_t)rand() % sizeof bytes;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)rand();
    gps_passing_send(fd, bytes, size, rand() % 2 ? fd : -1);
}

static int be_rowdy(unsigned number) {
    int silent[32];
    unsigned at = 0;
    srand(number + 99);
    memset(silent, 0xff, sizeof silent);
    for (; !atomic_load(&abuse.shared->over); at++) {
        int *fd = &silent[at % 32];
        if (*fd >= 0)
            close(*fd);
        *fd = dial();
        if (*fd >= 0 && rand() % 4 != 0)
            send_rubbish(*fd);
        atomic_fetch_add(&abuse.shared->rubbish, 1);
        nap(1);
    }
    return 0;
}

/* --- the one who kills, and judges --- */

static pid_t keeper(uint64_t *regions) {
    struct gps_owner self, who;
    gps_owner_self(&self);
    return gps_keeper_ping(&abuse.store, &self, SECOND, &who, regions) == 0 ? (pid_t)who.pid : 0;
}

static unsigned descriptors(pid_t pid) {
    char path[64];
    unsigned found = 0;
    DIR *dir;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    while (dir != NULL && readdir(dir) != NULL)
        found++;
    if (dir != NULL)
        closedir(dir);
    return found < 2 ? 0 : found - 2;
}

static long resident(pid_t pid) { /* KiB */
    char path[64], line[256];
    long size = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmRSS: %ld", &size) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return size;
}

static bool note_stand_by(void *found, const struct gps_proc *proc) {
    for (unsigned i = 0; proc->alive && i < proc->slot_count; i++)
        if (proc->slots[i].via == GPS_VIA_KEEPER)
            *(pid_t *)found = (pid_t)proc->slots[i].reserved;
    return true;
}

static pid_t stand_by(void) {
    pid_t found = 0;
    gps_proc_each(&abuse.store, note_stand_by, &found);
    return found;
}

static void kill_one(pid_t pid, atomic_ulong *kills) {
    if (pid > 0 && kill(pid, SIGKILL) == 0)
        atomic_fetch_add(kills, 1);
}

static void kill_for(double seconds) {
    const time_t end = time(NULL) + (time_t)seconds;
    while (time(NULL) < end) {
        const int kind = rand() % 8;
        uint64_t regions;
        pid_t first, second;
        nap(20 + (unsigned)rand() % 180);
        first = keeper(&regions);
        second = stand_by();
        if (kind == 0 && second > 0) {
            kill(second, SIGSTOP);
            nap(100);
            kill(second, SIGCONT);
        }
        if (kind > 3 || kind == 1)
            kill_one(second, &abuse.shared->other_kills);
        if (kind < 5)
            kill_one(first, &abuse.shared->kills);
    }
}

static unsigned files;

static int count_file(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st;
    (void)at;
    if (kind == FTW_F || kind == FTW_SL) {
        files++;
        fprintf(stderr, "left: %s\n", path);
    }
    return 0;
}

static unsigned left_files(void) {
    struct gps_gc_counts counts;
    gps_store_gc(&abuse.store, false, &counts);
    files = 0;
    nftw(abuse.store.path, count_file, 16, FTW_PHYS);
    return files;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void start_all(pid_t *children) {
    for (unsigned i = 0; i < WORKERS + ROWDIES; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(i < WORKERS ? work(i) : be_rowdy(i));
    }
}

static bool row(const char *what, unsigned long count, unsigned long most) {
    printf("%-44s %10lu%s\n", what, count, count > most ? "  <- wrong" : "");
    return count <= most;
}

#define ANY (~0ul)

static bool report(unsigned long regions, unsigned long open, long grown) {
    struct shared *shared = abuse.shared;
    bool good = row("deposits", atomic_load(&shared->deposits), ANY);
    row("opens", atomic_load(&shared->opens), ANY);
    row("connections with rubbish, or silent", atomic_load(&shared->rubbish), ANY);
    row("keepers killed", atomic_load(&shared->kills), ANY);
    row("stand-bys killed", atomic_load(&shared->other_kills), ANY);
    good &= row("regions lost", atomic_load(&shared->lost), 0);
    good &= row("answers later than 10 s", atomic_load(&shared->late), 0);
    good &= row("other errors", atomic_load(&shared->errors), 0);
    good &= row("wrong descriptors", atomic_load(&shared->wrong), 0);
    good &= row("regions of the last keeper", regions, WORKERS * OWN);
    good &= regions == WORKERS * OWN;
    good &= row("its descriptors beyond those", open - regions, OVERHEAD + 64);
    good &= row("its growth, KiB", grown > 0 ? (unsigned long)grown : 0, 512);
    return good;
}

static bool run(double seconds) {
    pid_t children[WORKERS + ROWDIES], last;
    uint64_t regions = 0;
    bool good = true;
    long size;
    start_all(children);
    while (atomic_load(&abuse.shared->ready) < WORKERS)
        nap(1);
    kill_for(seconds * 3 / 4);
    nap(999); /* the last keeper has all of them again */
    last = keeper(&regions);
    size = resident(last);
    nap(999);
    for (double t = 0; t < seconds / 4; t += 1)
        nap(999);
    last = keeper(&regions);
    good = report(regions, descriptors(last), resident(last) - size);
    atomic_store(&abuse.shared->over, true);
    for (unsigned i = 0; i < WORKERS + ROWDIES; i++) {
        int status = 0;
        waitpid(children[i], &status, 0);
        good &= status == 0;
    }
    for (int i = 0; i < 80 && keeper(&regions) > 0; i++)
        nap(100);
    good &= row("keepers that stay without a region", keeper(&regions) > 0, 0);
    return row("files left", left_files(), 0) && good;
}

int main(int argc, char **argv) {
    char root[] = "/dev/shm/gps-abuse-XXXXXX";
    const double seconds = argc > 2 ? atof(argv[2]) : 60;
    bool good;
    if (argc < 2 || setenv("GPUSHARE_KEEPER", argv[1], 1) != 0 || mkdtemp(root) == NULL ||
        gps_store_init(&abuse.store, root, "default", true) != 0) {
        fputs("usage: keeper_abuse GPUSHARE [SECONDS]\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    abuse.shared =
        mmap(NULL, sizeof *abuse.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (abuse.shared == MAP_FAILED)
        return 2;
    good = run(seconds);
    nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    puts(good ? "good" : "WRONG");
    return good ? 0 : 1;
}
