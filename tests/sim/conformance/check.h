/* The table that the program prints, a line a step. */
#pragma once

#include "../../common/system_headers.h"

/* Before all others. */
void check_open(void);
/* From now on steps belong to this row. */
void check_row(const char *row);
/* One step: what was expected, what came. Returns whether they agree. */
int check(const char *what, int64_t expected, int64_t got);
void check_skip(const char *why);
/* Something worth reading that may be otherwise each time. */
void check_note(const char *what);
/* Runs a row's steps in a process of their own, which may lose its context or its life. */
void check_in_child(const char *row, void (*steps)(void));
/* How many steps disagreed. */
int check_differences(void);

void memory_rows(void);
void life_rows(void);
void event_rows(void);
void load_rows(void);
void device_rows(void);
void vmm_rows(void);
void block_rows(void);
void hazard_rows(void);
void capture_rows(void);
void held_rows(void);
void owned_rows(void);
void checkpoint_rows(void);
void external_rows(void);
