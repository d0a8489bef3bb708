/*
 * json_tree.c - JSON as jansson's trees.
 */
#include "json_tree.h"

#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "util/text.h"

static json_t *need(json_t *value) {
    if (!value)
        tool_no_memory();
    return value;
}

json_t *json_tree_object(void) {
    return need(json_object());
}

json_t *json_tree_array(void) {
    return need(json_array());
}

json_t *json_tree_string(const char *string) {
    json_t *value = string != NULL ? json_string(string) : json_null();
    if (value)
        return value;
    size_t size = strlen(string) + 1;
    char *clean = tool_resize(NULL, size, 1);
    struct gps_text text = gps_text_on(clean, size);
    gps_text_plain(&text, string);
    value = need(json_string(clean));
    free(clean);
    return value;
}

void json_tree_set(json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value) != 0)
        tool_no_memory();
}

void json_tree_set_string(json_t *object, const char *key, const char *string) {
    json_tree_set(object, key, json_tree_string(string));
}

void json_tree_set_number(json_t *object, const char *key, int64_t value) {
    json_tree_set(object, key, need(json_integer(value)));
}

void json_tree_append(json_t *array, json_t *value) {
    if (json_array_append_new(array, value) != 0)
        tool_no_memory();
}

void json_tree_print(FILE *out, json_t *tree) {
    (void)json_dumpf(tree, out, JSON_INDENT(2));
    fputc('\n', out);
    json_decref(tree);
}
