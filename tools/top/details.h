/*
 * details.h - what `gpushare show` says of a row.
 */
#pragma once

/* Runs it for a process ("PID@NAMESPACE") or for the id of a region; malloc'ed. */
char *details_text(const char *target);
