/*
 * Runs what is known of AMD's runtime against whatever libamdhip64 is found, step by step with real
 * processes, and prints `row | what | expected | got | ok`. Exits 1 if anything differs: on a card
 * then what was read in AMD's sources is wrong, or was changed since; on the simulator the
 * simulator is. "assumed" are steps of which the sources say nothing.
 *
 * Not run: what needs a machine without a card (100, 101), more than one card, VMM memory, and
 * ROCr's faults.
 */
#include "hip.h"

#include "../../conformance/check.h"

static void say_what_it_is(void) {
    const char *legacy = getenv("HSA_ENABLE_IPC_MODE_LEGACY");
    char text[128];
    snprintf(text, sizeof text, "%s, HIP %d.%d, HSA_ENABLE_IPC_MODE_LEGACY=%s", hip.soname,
             hip.major, hip.minor, legacy ? legacy : "");
    check_row("-");
    check_note(text);
}

int main(void) {
    if (!hip_load())
        return 2;
    if (!hip_ask_version()) {
        fprintf(stderr, "conformance: %s does not tell its version\n", hip.soname);
        return 2;
    }
    check_open();
    signal(SIGPIPE, SIG_IGN); /* a peer that hung is gone */
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("row  | %-58s | expected |      got | ok\n", "what");
    say_what_it_is();
    alone_rows();
    pair_rows();
    return check_differences() ? 1 : 0;
}
