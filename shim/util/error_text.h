/*
 * error_text.h - what an errno means, in the words of glibc.
 *
 * strerror takes locale locks and may allocate; strerrordesc_np came with glibc 2.32.
 */
#pragma once

/* Never NULL. */
const char *gps_error_text(int error);
