/*
 * last_error.h - what hipGetLastError tells the program, as if our own calls had not been.
 *
 * Every call of the runtime's may change its thread's last error: before version 7 it is the result
 * of the last call, from 7 on the last one that is not 0, until it is asked for. So a wrapper notes
 * it before it begins and sets it when it ends. Only 0, 1 and 400 can be set, by a call that
 * answers so. For any other code 400 is set, which few calls answer, and hipGetLastError tells the
 * other one while it is still there. The state is thread-local.
 */
#pragma once

/* The error before a call of the program's. */
int gps_last_error_begin(void);
/* The call has answered `code`. */
void gps_last_error_end(int before, int code);
/* So has one that made no calls of our own. */
void gps_last_error_passed(int code);
