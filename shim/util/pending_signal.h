/*
 * pending_signal.h - a signal that the library's own system call raised.
 */
#pragma once

/* Discards a signal that is pending for this thread, where it is blocked. Nothing happens where it
 * is ignored and so never was pending. Changes errno. */
void gps_signal_discard(int number);
