/*
 * json_tree.h - JSON as jansson's trees, built from text of any kind.
 *
 * The tool ends when memory runs out, so no caller checks a result. Functions that add a value take
 * over the reference to it.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Works as json_pack does. Every string must be UTF-8; json_tree_string takes any other. */
json_t *json_tree_pack(const char *format, ...);
/* Packs an object and adds its members to `object`. */
void json_tree_add(json_t *object, const char *format, ...);

/* NULL becomes null; bytes that are not UTF-8 become U+FFFD. */
json_t *json_tree_string(const char *string);
/* The value as a string: "0x1b2c". */
json_t *json_tree_hex(uint64_t value);
/* Nanoseconds as a number of seconds with three decimals. */
json_t *json_tree_seconds(uint64_t nanos);

void json_tree_append(json_t *array, json_t *value);

/* Prints the tree, indented, in the order in which it was built, and frees it. */
void json_tree_print(FILE *out, json_t *tree);
/* Prints the next element of an array that never is in memory as a whole, after `before` others,
 * and frees it. The caller prints the end of the array. */
void json_tree_print_element(FILE *out, size_t before, json_t *element);
