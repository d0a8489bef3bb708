/*
 * worker.h - what the modules of soak-worker share: journal.c (what happened), memory.c (device
 * memory and its model), opens.c (what this process has open), misuse.c (what a program must not
 * do), trouble.c (what the world does to it), worker.c (threads and the end).
 */
#pragma once

#include "../common/system_headers.h"

#include "../apps/vendor.h"

enum { THREADS = 4, SLOTS = 6, STALE = 16, PATH = 512, BLOCK = 2 << 20, CALL_NAME = 48 };
enum { INSIDE = 4096 }; /* an address inside memory, from its beginning */

/* --- the journal: shared with soak.py, which knows the names from the file `counts` --- */

#define COUNTS(ROW)                                                                                \
    ROW(steps)                                                                                     \
    ROW(allocated)                                                                                 \
    ROW(exported)                                                                                  \
    ROW(opened)                                                                                    \
    ROW(closed)                                                                                    \
    ROW(freed)                                                                                     \
    ROW(refused)                                                                                   \
    ROW(raced)                                                                                     \
    ROW(already_mapped)                                                                            \
    ROW(out_of_memory)                                                                             \
    ROW(hogs)                                                                                      \
    ROW(hand_overs)                                                                                \
    ROW(taken)                                                                                     \
    ROW(events_opened)                                                                             \
    ROW(double_free)                                                                               \
    ROW(double_close)                                                                              \
    ROW(free_interior)                                                                             \
    ROW(free_imported)                                                                             \
    ROW(close_own)                                                                                 \
    ROW(close_interior)                                                                            \
    ROW(open_own)                                                                                  \
    ROW(open_stale)                                                                                \
    ROW(open_junk)                                                                                 \
    ROW(open_twice)                                                                                \
    ROW(stale_opened)                                                                              \
    ROW(few_descriptors)                                                                           \
    ROW(few_threads)                                                                               \
    ROW(forks)                                                                                     \
    ROW(fork_calls)                                                                                \
    ROW(execs)                                                                                     \
    ROW(handler_exits)                                                                             \
    ROW(handler_jumps)                                                                             \
    ROW(unsafe_jumps)                                                                              \
    ROW(wrong)

enum count {
#define COUNT_ENUM(name) COUNT_##name,
    COUNTS(COUNT_ENUM)
#undef COUNT_ENUM
        COUNT_KINDS
};

/* The file `control`. */
struct control {
    atomic_ulong full; /* odd while the published directory is full; only grows */
    atomic_ulong counts[COUNT_KINDS];
};

/* The file `status/PID`: a row for each thread; since is 0 outside a call. Milliseconds. */
struct status {
    atomic_ulong since, steps;
    char call[CALL_NAME];
};

/* --- memory --- */

struct tag { /* what an exporter writes */
    uint32_t magic, pid, number, sum;
};

enum kind {
    KIND_PLAIN, /* whole blocks, tag at both ends */
    KIND_SMALL, /* the same, but they lie in one block with others */
    KIND_RULE,  /* a rule of role = auto takes it: each process has a place of its own */
    KIND_VMM,   /* the same, backing = vmm */
    KINDS
};

struct advert { /* a file in `adverts` */
    cudaIpcMemHandle_t handle;
    uintptr_t at;       /* in its exporter */
    size_t size, place; /* of its tag */
    struct tag tag;
    int kind;
    bool weak; /* exported where gpushare could not publish it */
};

struct slot {
    void *pointer;
    struct advert advert;
    char path[PATH]; /* own: empty until exported */
    bool weak;       /* opened where gpushare could not say so */
};

enum plan { PLAN_NONE, PLAN_EXIT, PLAN_JUMP, PLAN_SAFE_JUMP };

/* What a thread has. */
struct self {
    unsigned seed, number;
    struct status *status;
    struct slot own[SLOTS], opened[SLOTS];
    struct advert stale[STALE]; /* handles of memory whose file is gone */
    unsigned stale_count;
    bool few; /* descriptors: what needs one may fail */
    sigjmp_buf landing;
    volatile sig_atomic_t inside, jumpable, waiting;
};

struct world {
    const char *place;   /* the directory of this run */
    const char *name;    /* giver or taker */
    const char *without; /* SOAK_WITHOUT */
    bool bare, share, taker;
    unsigned threads, steps; /* steps: 0 is without end */
    struct self selves[THREADS];
    atomic_int over, plan, started; /* started: has used CUDA */
    atomic_ulong epoch,
        trouble; /* of the directory, as last seen; when publishing last may have failed */
    bool poor;   /* runs out of descriptors now and then */
};
extern struct world world;
extern _Thread_local struct self *self;

/* journal.c */
void journal_open(void);
void journal_forget(void); /* in a forked child: what it does is not its parent's */
void say_end(void);        /* from here on its regions' records go, and then its memory */
bool has_said_end(unsigned pid);
void count(enum count what);
bool directory_full(void);
unsigned long full_epoch(void);
__attribute__((format(printf, 1, 2))) void wrong(const char *format, ...);
void call_begin(const char *name);
int call_end(int code);
#define CALL(call) (call_begin(#call), call_end((int)(call)))
void expect(int got, int wanted, const char *what);
void expect_any(int got, const char *codes, const char *what); /* codes as " 0 2 " */
unsigned dice(unsigned sides);
uint64_t milliseconds(void);
void nap(unsigned ms);

/* memory.c: steps that are legal. Each may do nothing. */
bool allocate(struct slot *slot, enum kind kind, size_t size);
void release(struct slot *slot);
void release_at(struct slot *slot, size_t at); /* by an address inside, as AMD's runtime has it */
void close_one(struct slot *slot);
void close_by(struct slot *slot, int (*call)(const struct slot *));
void look(const struct slot *slot, const char *when);
bool has_place(const struct slot *slot); /* one of many in memory that a rule took */
void step_memory(void);
void step_again(void);
void step_rule_memory(void);
void step_hand_over(void);
void step_event(void);
void step_hog(void);

/* opens.c: an open. ALREADY_MAPPED is right while older memory of the same place is open here. */
enum { ALREADY_MAPPED = 208, CANNOT_ATTACH = 17 /* AMD's, for whatever reason */ };
int open_memory(struct slot *slot);
int close_memory(const struct slot *slot);
/* What AMD's runtime takes for a close, and CUDA's refuses with 1. */
int close_inside(const struct slot *slot);
int free_opened(const struct slot *slot);

/* misuse.c: alone in the process */
void step_misuse(void);

/* worker.c: one that is legal and waits for nobody */
void some_step(void);

/* trouble.c */
void step_trouble(void);
void step_fork(void);                     /* alone in the process */
void say_where_it_crashes(void);          /* for a child that its parent awaits */
void few_descriptors(void (*step)(void)); /* alone in the process */
void trouble_open(void);
