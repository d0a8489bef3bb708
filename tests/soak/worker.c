/*
 * worker.c - one of the processes of soak.py: an adversary of gpushare's. Two to four threads
 * allocate, export, open, close, free, share events, follow rules, misuse handles, fork, run out of
 * things and are interrupted, at random but by a seed. Each call's answer is compared with what the
 * bare driver would answer (memory.c, misuse.c).
 *
 * usage: giver|taker PLACE SEED share|audit|bare [STEPS]
 *
 * Its name says on which side of a hand-over it is. PLACE is made by soak.py: what goes wrong is a
 * line in PLACE/journal, what happened is counted in PLACE/control, which call is under way stands
 * in PLACE/status/PID. It ends by itself after some thousand steps, or after STEPS, in one of many
 * ways, or at SIGTERM, having closed and freed all; 77 and 78 are its ends in a signal handler and
 * after a jump out of one.
 *
 * In mode = audit a free of memory that is open goes through, as bare: small allocations are not
 * exported then, since their place is given out again with the same handle.
 */

#include "worker.h"

struct world world;
_Thread_local struct self *self;

/* Misuse is alone in the process, everything else side by side. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

void some_step(void) {
    (dice(4) ? step_memory : step_rule_memory)();
}

static void step_few(void) {
    if (world.poor)
        few_descriptors(some_step);
}

/* What is done how often, of 400; SOAK_WITHOUT leaves out by name. */
static const struct kind_of_step {
    unsigned share;
    const char *name;
    bool alone;
    void (*step)(void);
} kinds[] = {{213, "memory", false, step_memory},
             {40, "again", false, step_again},
             {60, "rules", false, step_rule_memory},
             {40, "misuse", true, step_misuse},
             {30, "events", false, step_event},
             {6, "rules", false, step_hand_over},
             {5, "few", true, step_few},
             {1, "hog", false, step_hog},
             {2, "trouble", false, step_trouble},
             {3, "fork", true, step_fork}};

static const struct kind_of_step *choose_step(void) {
    const struct kind_of_step *kind = kinds;
    for (unsigned at = dice(400); at >= kind->share; kind++)
        at -= kind->share;
    return world.without && strstr(world.without, kind->name) ? kinds : kind;
}

static void step(void) {
    const struct kind_of_step *kind = choose_step();
    if (kind->alone)
        pthread_rwlock_wrlock(&lock);
    else
        pthread_rwlock_rdlock(&lock);
    kind->step();
    const unsigned long steps = atomic_fetch_add(&self->status->steps, 1) + 1;
    if (world.steps && steps >= world.steps)
        world.over = 1;
    count(COUNT_steps);
    pthread_rwlock_unlock(&lock); /* a forked child writes what is read above */
}

/* Whoever was thrown out of a call of the driver's, its locks and all, can only end. */
static void land(int how) {
    if (how == 2)
        _exit(78);
    if (how == 1) {
        world.plan = PLAN_NONE;
        pthread_rwlock_unlock(&lock);
    }
}

static void *run(void *argument) {
    self = argument;
    land(sigsetjmp(self->landing, 1));
    self->jumpable = 1;
    while (!world.over)
        step();
    self->jumpable = 0;
    return NULL;
}

static void stop(int number) {
    world.over = 1;
}

static void clean(void) {
    for (unsigned i = 0; i < world.threads; i++) {
        self = &world.selves[i];
        for (unsigned j = 0; j < SLOTS; j++) {
            if (self->opened[j].pointer)
                close_one(&self->opened[j]);
            if (self->own[j].pointer)
                release(&self->own[j]);
        }
    }
    self = &world.selves[0];
}

static void parse(char **argv) {
    const char *name = strrchr(argv[0], '/');
    world.name = name ? name + 1 : argv[0];
    world.taker = strcmp(world.name, "taker") == 0;
    world.place = argv[1];
    world.without = getenv("SOAK_WITHOUT");
    world.bare = strcmp(argv[3], "bare") == 0;
    world.share = strcmp(argv[3], "share") == 0;
    self = &world.selves[0];
    self->seed = (unsigned)atoi(argv[2]);
    world.steps = argv[4] ? (unsigned)atoi(argv[4]) : 2000 + dice(20000);
    world.poor = dice(3) == 0;
    world.threads =
        getenv("SOAK_THREADS") ? (unsigned)atoi(getenv("SOAK_THREADS")) : 2 + dice(THREADS - 1);
    for (unsigned i = 1; i < THREADS; i++)
        world.selves[i] = (struct self){.number = i, .seed = self->seed * 31 + i};
}

/* Who ends without freeing says so first. */
static void hide(void) {
    for (unsigned i = 0; i < world.threads; i++)
        for (unsigned j = 0; j < SLOTS; j++)
            if (*world.selves[i].own[j].path)
                unlink(world.selves[i].own[j].path);
}

static int finish(void) {
    const unsigned kind = dice(8);
    say_end();
    if (world.steps < 1000 || kind < 4) {
        clean();
        return 0;
    }
    hide();
    if (kind == 4)
        exit(0);
    if (kind == 5)
        _exit(0);
    if (kind == 6)
        quick_exit(0);
    return 0;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    if (argc < 4)
        return 2;
    parse(argv);
    journal_open();
    signal(SIGTERM, stop);
    trouble_open();
    if (argv[4])
        say_where_it_crashes();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 1; i < world.threads; i++)
        if (pthread_create(&threads[i], NULL, run, &world.selves[i]) != 0)
            return 3;
    run(&world.selves[0]);
    for (unsigned i = 1; i < world.threads; i++)
        pthread_join(threads[i], NULL);
    pthread_rwlock_wrlock(&lock); /* gcc 12's thread sanitizer has been seen to miss a join */
    pthread_rwlock_unlock(&lock);
    world.plan = PLAN_NONE;
    return finish();
}
