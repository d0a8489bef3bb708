/*
 * check_words.h - what a rule does, in sentences.
 */
#pragma once

#include "config/config.h"

void check_print_words(const struct gps_rule *rule);
