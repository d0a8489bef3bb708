/*
 * config.h - the options and region rules of gpushare.conf: reading, checking and matching them.
 *
 * A process reads its configuration once, at its first CUDA call, into a struct that is constant
 * from then on and may be read from any thread. options.def has one row for each key, with its
 * type, default, allowed values and description; the file, the environment, `gpushare check` and
 * the listing all use these rows. An unknown key, a bad value and a key given twice are errors with
 * file and line. A configuration with an error is not used at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/finding.h"
#include "gpushare/frames.h"
#include "gpushare/region.h"

enum gps_mode { GPS_MODE_SHARE, GPS_MODE_AUDIT, GPS_MODE_OFF };
enum gps_on_free { GPS_FREE_DEFER, GPS_FREE_WAIT, GPS_FREE_REFUSE, GPS_FREE_ALLOW };
enum gps_log_format { GPS_LOG_TEXT, GPS_LOG_JSONL };
enum gps_leak_check { GPS_LEAK_CHECK_OFF, GPS_LEAK_CHECK_ON };
enum gps_vmm_ipc { GPS_VMM_IPC_OFF, GPS_VMM_IPC_ON };
enum gps_role { GPS_ROLE_EXPORT, GPS_ROLE_IMPORT, GPS_ROLE_AUTO, GPS_ROLE_MERGE };
enum gps_missing { GPS_MISSING_PRIVATE, GPS_MISSING_FAIL };
enum gps_ready { GPS_READY_ALLOC, GPS_READY_FREE };
enum gps_backing_key { GPS_RULE_LEGACY, GPS_RULE_VMM };
enum gps_access { GPS_ACCESS_RW, GPS_ACCESS_RO };
enum gps_touch_key { GPS_TOUCH_WORDS, GPS_TOUCH_ANY };
enum gps_content { GPS_CONTENT_UPLOADED, GPS_CONTENT_ANY };
enum gps_verify { GPS_VERIFY_BYTES, GPS_VERIFY_OFF };
enum gps_overcommit { GPS_OVERCOMMIT_OFF, GPS_OVERCOMMIT_ON };
enum gps_suspend { GPS_SUSPEND_OFF, GPS_SUSPEND_ON };
enum gps_free { GPS_FREE_STEADY, GPS_FREE_DRIVER };
enum gps_blocks { GPS_BLOCKS_ON, GPS_BLOCKS_OFF };
enum gps_rdma { GPS_RDMA_OFF, GPS_RDMA_ON };
enum gps_mps { GPS_MPS_OFF, GPS_MPS_ON };
enum gps_created_key { GPS_CREATED_OFF, GPS_CREATED_ON };

#define GPS_KEYS_MAX        25u /* no section has more keys */
#define GPS_CONFIG_PATH     1024u
#define GPS_GLOB_BYTES      128u
#define GPS_STACK_MAX       64u
#define GPS_OPEN_CACHE_MAX  65536u
#define GPS_FRAME_WAITS_MAX 1000u
#define GPS_MERGE_LEAST     (UINT64_C(1) << 20) /* merge rules take no smaller allocations */
#define GPS_UUID_TEXT       41u                 /* "GPU-" and 36 characters, with the NUL */

/* Section [gpushare]. Times are in nanoseconds. */
struct gps_options {
    enum gps_mode mode;
    enum gps_on_free on_free;
    uint64_t free_timeout;
    uint64_t linger;
    unsigned open_cache; /* 0 to GPS_OPEN_CACHE_MAX */
    uint64_t open_cache_bytes;
    enum gps_vmm_ipc vmm_ipc;
    char log[GPS_CONFIG_PATH]; /* "stderr", or a path in which %p is the pid and %c the command */
    enum gps_log_format log_format;
    enum gps_level log_level;
    uint64_t log_max;                /* bytes a process */
    char event_log[GPS_CONFIG_PATH]; /* "off", or a path as log has it */
    enum gps_leak_check leak_check;
    unsigned stack_depth; /* 0 to GPS_STACK_MAX */
    enum gps_suspend suspend;
    enum gps_blocks blocks;
    uint64_t suspend_memory; /* bytes; UINT64_MAX: a quarter of the memory left */
    enum gps_free free;      /* with a merge rule */
};

/* Whether a merge rule may take memory of cuMemCreate: tokens pass on memory that the program made,
 * and merged blocks of such memory could not be evicted. */
static inline bool gps_options_merge_created(const struct gps_options *options) {
    return options->vmm_ipc == GPS_VMM_IPC_OFF && options->suspend == GPS_SUSPEND_OFF;
}

enum gps_device_kind { GPS_DEVICE_ANY, GPS_DEVICE_ORDINAL, GPS_DEVICE_UUID };

/* One section [region NAME]. Sections that differ in role or program may have the same name, so
 * that one file serves the exporter and its importers. */
struct gps_rule {
    char name[GPS_NAME_BYTES]; /* as written, with {n} and {device} */
    unsigned line;             /* of the section header */
    char program[GPS_GLOB_BYTES];
    uint64_t size_min, size_max;   /* both inclusive; bytes; "*" is 1 to UINT64_MAX */
    uint64_t index_min, index_max; /* both inclusive, counted from 0; "*" is 0 to UINT64_MAX */
    enum gps_device_kind device_kind;
    unsigned device_ordinal;
    uint8_t device_uuid[GPS_UUID_BYTES];
    char caller[GPS_GLOB_BYTES];
    enum gps_role role;
    uint64_t wait;
    enum gps_missing missing;
    enum gps_ready ready;
    uint64_t handover;
    enum gps_backing_key backing;
    enum gps_keep keep;
    uint64_t keep_for;      /* GPS_KEEP_FOR */
    enum gps_access access; /* of importers */
    enum gps_frames_mode frames;
    unsigned frame_slots;    /* 2 to GPS_FRAMES_SLOTS_MAX */
    uint64_t frames_timeout; /* GPS_FRAMES_EACH */
    unsigned frame_waits;    /* 0: not fixed */
    enum gps_touch_key touch;
    uint64_t quiet; /* GPS_ROLE_MERGE, and the six below */
    enum gps_content content;
    enum gps_verify verify;
    enum gps_overcommit overcommit; /* with quiet = 0 */
    enum gps_rdma rdma;
    enum gps_mps mps;
    enum gps_created_key created; /* memory of cuMemCreate, too */
    unsigned lines[GPS_KEYS_MAX]; /* of its keys in the file, as options.def has them; or 0 */
};

struct gps_config {
    struct gps_options options;
    struct gps_rule *rules; /* in the order of the file: the first that matches wins */
    size_t rule_count;
    char source[GPS_CONFIG_PATH]; /* the file read; empty: none was found, all defaults */
    unsigned lines[GPS_KEYS_MAX]; /* of the options that the file has, as in options.def; else 0 */
    unsigned from_environment;    /* the options from variables: bit n is the n-th of options.def */
};

/* Called for each error with one line of text (no newline): the fault, and the allowed values. Line
 * 0 stands for the file as a whole. For the environment, `file` is the name of the variable, such
 * as "GPUSHARE_MODE", and the line is 0. */
typedef void gps_config_error_fn(void *arg, const char *file, unsigned line, const char *message);

#define GPS_CONFIG_SYSTEM "/etc/gpushare.conf"
/* The user's own file; false: the environment does not name it. */
bool gps_config_home(char path[GPS_CONFIG_PATH]);

/* Loads the configuration: the defaults, over them the first file of GPUSHARE_CONFIG,
 * $XDG_CONFIG_HOME/gpushare/gpushare.conf (~/.config/...) and /etc/gpushare.conf, and over that the
 * variables GPUSHARE_<KEY>. A missing default file is no error; a GPUSHARE_CONFIG that cannot be
 * read is one. 0; -EINVAL after fn, which may be NULL, was called for every error; or -ENOMEM.
 * After an error *config holds the defaults. Reads the environment with secure_getenv, so a set-uid
 * program has none. Allocates memory that gps_config_free frees. To be called once. */
int gps_config_load(struct gps_config *config, gps_config_error_fn *fn, void *arg);

/* Loads one file, or a text in memory, over the defaults and without the environment: for
 * `gpushare check`, tests and the fuzzer. The text is written to, with one byte behind its `count`.
 * Returns as gps_config_load. */
int gps_config_read_file(struct gps_config *config, const char *path, gps_config_error_fn *fn,
                         void *arg);
int gps_config_parse(struct gps_config *config, const char *file, char *text, size_t count,
                     gps_config_error_fn *fn, void *arg);
void gps_config_free(struct gps_config *config);

/* Whether a configuration works with a vendor whose runtime has no memory in blocks: HIP. Calls fn
 * for the option, and for each rule for a program of this name (NULL: for any), that does not. 0 or
 * -EINVAL. */
int gps_config_check_plain(const struct gps_config *config, const char *program,
                           const char *executable, gps_config_error_fn *fn, void *arg);

/* Whether programs that a rule shares a region with exchange whole frames: by this rule, or by one
 * for the exporter of that name. */
bool gps_config_has_frames(const struct gps_config *config, const struct gps_rule *rule);

/* --- matching --- */

struct gps_alloc_facts {
    const char *program;    /* its name: of a script, say */
    const char *executable; /* its file name */
    uint64_t size;
    unsigned device_ordinal;
    const uint8_t *device_uuid; /* GPS_UUID_BYTES */
    bool pool;                  /* cudaMallocAsync: for rules of regions with backing = vmm */
    bool created;               /* cuMemCreate: for merge rules with created = on */
};

/* Whether a rule is for a program of this name or with this executable. */
bool gps_rule_is_for(const struct gps_rule *rule, const char *program, const char *executable);

/* Whether a rule fits an allocation, without its index and caller, or the first reason against it.
 * The index counts the allocations of the process that the rule fits and no earlier rule took; {n}
 * is the same number. */
enum gps_mismatch {
    GPS_FITS,
    GPS_OTHER_PROGRAM,
    GPS_OTHER_SIZE,
    GPS_OTHER_DEVICE,
    GPS_POOL_MEMORY,    /* the rule merges, or has no backing = vmm */
    GPS_CREATED_MEMORY, /* the rule has no created = on */
};
enum gps_mismatch gps_rule_mismatch(const struct gps_rule *rule,
                                    const struct gps_alloc_facts *facts);
static inline bool gps_rule_takes(const struct gps_rule *rule, uint64_t index) {
    return rule->index_min <= index && index <= rule->index_max;
}
bool gps_rule_needs_caller(const struct gps_rule *rule);
static inline bool gps_rule_exports(const struct gps_rule *rule) {
    return rule->role == GPS_ROLE_EXPORT || rule->role == GPS_ROLE_AUTO;
}
/* How far a size is from those that the rule takes. */
static inline uint64_t gps_rule_size_distance(const struct gps_rule *rule, uint64_t size) {
    return size < rule->size_min ? rule->size_min - size : size - rule->size_max;
}
/* Whether a file name matches a glob with * ? [] and \. Bytes are compared, in no locale. */
bool gps_glob_match(const char *pattern, const char *string);
/* The same for a program's name, with A to Z as a to z: people mistype them. */
bool gps_glob_match_any_case(const char *pattern, const char *string);
/* The rule's name with {n} and {device} (ordinal) replaced. False: it is longer than 127. */
bool gps_rule_name(const struct gps_rule *rule, uint64_t n, unsigned device,
                   char name[GPS_NAME_BYTES]);

/* --- listing: the options with their values and origins, for `gpushare check` --- */
/* from: "default", "file" or "environment". allowed: for a choice, the list of its values. */
typedef void gps_option_fn(void *arg, const char *key, const char *value, const char *from,
                           const char *allowed, const char *sentence);
void gps_config_each_option(const struct gps_config *config, gps_option_fn *fn, void *arg);
/* The keys of a rule with their values, defaults included, as a file would have them. */
void gps_rule_each_key(const struct gps_rule *rule,
                       void (*fn)(void *arg, const char *key, const char *value), void *arg);

/* --- units, shared with the tool --- */
bool gps_parse_duration(const char *text, uint64_t *nanos);          /* 30s 500ms 2min 1h 0 */
bool gps_parse_uuid(const char *text, uint8_t uuid[GPS_UUID_BYTES]); /* GPU-8-4-4-4-12, MIG- too */
void gps_format_uuid(const uint8_t uuid[GPS_UUID_BYTES], char text[GPS_UUID_TEXT]); /* "GPU-..." */
