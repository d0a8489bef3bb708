/*
 * configuration.h - prints a configuration, and the errors in one.
 */
#pragma once

#include "config/config.h"

/* A gps_config_error_fn: "file:line: message" on stderr, as compilers do. */
void configuration_error(void *arg, const char *file, unsigned line, const char *message);

/* The options and rules that are in force, one a line. */
void configuration_print(const struct gps_config *config);
