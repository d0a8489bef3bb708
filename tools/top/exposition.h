/*
 * exposition.h - the usage as metrics for Prometheus.
 *
 * The text is both Prometheus' format (0.0.4, as node_exporter's textfile collector reads it) and
 * OpenMetrics 1.0. All metrics are gauges. Each has the label `directory`, so that the files of
 * several users and namespaces can stand side by side.
 */
#pragma once

#include <stdio.h>

#include "usage.h"

void exposition_write(FILE *out, const struct usage *usage);
