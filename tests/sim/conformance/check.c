/* The table that the program prints; see check.h. */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>

static struct {
    const char *row;
    int steps, differences;
} table;

void check_row(const char *row) {
    table.row = row;
}

int check(const char *what, int64_t expected, int64_t got) {
    table.steps++;
    table.differences += expected != got;
    printf("%-4s | %-58s | %8" PRId64 " | %8" PRId64 " | %s\n", table.row, what, expected, got,
           expected == got ? "ok" : "DIFFERS");
    return expected == got;
}

void check_skip(const char *why) {
    printf("%-4s | %-58s | %8s | %8s | skipped\n", table.row, why, "", "");
}

void check_note(const char *what) {
    printf("%-4s | %-58s | %8s | %8s | note\n", table.row, what, "", "");
}

int check_differences(void) {
    printf("%d steps, %d differ\n", table.steps, table.differences);
    return table.differences;
}
