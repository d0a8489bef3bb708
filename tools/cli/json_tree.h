/*
 * json_tree.h - JSON as jansson's trees, built from text of any kind.
 *
 * The tool ends when memory runs out; so no result need be checked. Setters take over the reference
 * that they are given.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* As json_pack. Every string in it must be UTF-8; for others there is json_tree_string. */
json_t *json_tree_pack(const char *format, ...);
/* Packs an object and adds its members to `object`. */
void json_tree_add(json_t *object, const char *format, ...);

/* NULL becomes null; bytes that are not UTF-8 become U+FFFD. */
json_t *json_tree_string(const char *string);
/* "0x1b2c" */
json_t *json_tree_hex(uint64_t value);
/* Nanoseconds as seconds with a fraction, to the millisecond. */
json_t *json_tree_seconds(uint64_t nanos);

void json_tree_append(json_t *array, json_t *value);

/* Prints the tree, indented, in the order in which it was built, and frees it. */
void json_tree_print(FILE *out, json_t *tree);
/* The same for an array that is never there as a whole: the next element, without the end. */
void json_tree_print_element(FILE *out, size_t before, json_t *element);
