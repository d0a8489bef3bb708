/*
 * assertion.h - the reaction of the library to a wrong state of its own.
 *
 * Assertions are part of every build, because the tests run the library that ships. In a user's
 * program a failed one does nothing. Where GPUSHARE_ASSERTIONS names a file, as in the tests, it
 * appends a line to that file and to stderr, and aborts.
 */
#pragma once

/* An object `what` is in the state `was`, which the state `becomes` may not follow. Any thread. */
__attribute__((cold)) void gps_assertion_failed(const char *what, const char *was,
                                                const char *becomes);
