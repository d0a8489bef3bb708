/* The table that the program prints; see check.h. */
#include "check.h"

#include <inttypes.h>

static const char *current_row;
static struct { int steps, differences; } * count; /* children count there, too */

void check_open(void) {
    count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (count == MAP_FAILED)
        exit(2);
}

void check_row(const char *row) {
    current_row = row;
}

int check(const char *what, int64_t expected, int64_t got) {
    count->steps++;
    count->differences += expected != got;
    printf("%-4s | %-58s | %8" PRId64 " | %8" PRId64 " | %s\n", current_row, what, expected, got,
           expected == got ? "ok" : "DIFFERS");
    return expected == got;
}

void check_skip(const char *why) {
    printf("%-4s | %-58s | %8s | %8s | skipped\n", current_row, why, "", "");
}

void check_note(const char *what) {
    printf("%-4s | %-58s | %8s | %8s | note\n", current_row, what, "", "");
}

void check_in_child(const char *row, void (*steps)(void)) {
    int status = 0;
    check_row(row);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        steps();
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        check("the process that runs it ends with", 0, status ? status : -1);
}

int check_differences(void) {
    printf("%d steps, %d differ\n", count->steps, count->differences);
    return count->differences;
}
