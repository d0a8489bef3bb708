/*
 * usage_json.h - the usage for scripts: one object.
 */
#pragma once

#include "cli/json_tree.h"
#include "usage.h"

json_t *usage_json(const struct usage *usage);
