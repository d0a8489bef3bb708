/*
 * finding.h - the one catalogue of what gpushare reports.
 *
 * A row: the identifier in C, the id that people and scripts see, its level, one sentence that says
 * what happened, and one that says what to change. The library, the tool and the documentation are
 * generated from these rows or tested against them; a new finding is a new row.
 *
 * Levels: ERROR, the program is wrong and its results or its peers' are at risk; WARNING, it works
 * only by luck or by gpushare's protection, or sharing did not happen as configured; INFO, worth
 * knowing. Sentences carry no pointers or names: those are fields of the report.
 */
#ifndef GPUSHARE_FINDING_H
#define GPUSHARE_FINDING_H

#define GPS_FINDINGS(ROW)                                                                          \
    ROW(FREE_WHILE_OPEN, "free-while-open", WARNING,                                               \
        "memory was freed while another process has it open",                                      \
        "let every importer call cudaIpcCloseMemHandle before its exporter calls cudaFree")        \
    ROW(EXIT_WHILE_OPEN, "exit-while-open", WARNING,                                               \
        "a process ended while other processes have its memory open",                              \
        "wait for the importers to close before exiting, or set linger in the configuration")      \
    ROW(DOUBLE_FREE, "double-free", ERROR, "memory that is freed already was freed again",         \
        "free each allocation once; clear the pointer after cudaFree")                             \
    ROW(DOUBLE_OPEN, "double-open", WARNING,                                                       \
        "a memory handle that is open in this context was opened again",                           \
        "keep the pointer of the first open, or close the handle once for every open")             \
    ROW(OPEN_STALE, "open-stale", ERROR,                                                           \
        "a handle was opened whose memory its exporter has freed",                                 \
        "send a new handle after each allocation; drop the old one when its exporter frees")       \
    ROW(OPEN_DEAD_OWNER, "open-dead-owner", ERROR, "a handle was opened whose exporter has ended", \
        "keep the exporter running until its importers have opened, or hand over with ready = "    \
        "free")                                                                                    \
    ROW(SHARE_MISMATCH, "share-mismatch", ERROR,                                                   \
        "a region does not fit the allocation that should share it",                               \
        "make size and device of the rule's allocations agree in exporter and importer")           \
    ROW(SHARE_TIMEOUT, "share-timeout", WARNING, "the other side of a shared region did not come", \
        "start the other program sooner, or raise wait (import) or handover (export)")             \
    ROW(SHARE_FALLBACK, "share-fallback", WARNING,                                                 \
        "an allocation that a rule matches was left private",                                      \
        "see the reason; a name belongs to one live exporter and to one allocation of it")         \
    ROW(CONFIG_ERROR, "config-error", ERROR,                                                       \
        "the configuration cannot be used; gpushare is off in this process",                       \
        "correct it and test it with: gpushare check FILE")                                        \
    ROW(RECORD_INVALID, "record-invalid", WARNING,                                                 \
        "a file in the published directory is damaged or not gpushare's; it was skipped",          \
        "remove it with: gpushare gc")                                                             \
    ROW(STORE_UNAVAILABLE, "store-unavailable", WARNING,                                           \
        "the published directory cannot be used; other processes do not see this one's memory",    \
        "run: gpushare doctor")

enum gps_level { GPS_LEVEL_INFO = 0, GPS_LEVEL_WARNING = 1, GPS_LEVEL_ERROR = 2 };

#define GPS_FINDING_ENUM(id, text, level, sentence, hint) GPS_##id,
enum gps_finding { GPS_FINDINGS(GPS_FINDING_ENUM) GPS_FINDING_COUNT };
#undef GPS_FINDING_ENUM

#endif
