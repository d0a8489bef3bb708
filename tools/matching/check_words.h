/*
 * check_words.h - describes in sentences what a rule does.
 */
#pragma once

#include "config/config.h"

void check_print_words(const struct gps_rule *rule);
