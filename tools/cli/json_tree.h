/*
 * json_tree.h - JSON as jansson's trees, built from text of any kind.
 *
 * Without memory the tool ends; so no result need be looked at. Setters own what they are given.
 */
#ifndef JSON_TREE_H
#define JSON_TREE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

json_t *json_tree_object(void);
json_t *json_tree_array(void);
/* NULL becomes null; what is not UTF-8 is replaced. */
json_t *json_tree_string(const char *string);
void json_tree_set(json_t *object, const char *key, json_t *value);
void json_tree_set_string(json_t *object, const char *key, const char *string);
void json_tree_set_number(json_t *object, const char *key, int64_t value);
void json_tree_append(json_t *array, json_t *value);
/* Indented, in the order in which it was built; and frees it. */
void json_tree_print(FILE *out, json_t *tree);

#endif
