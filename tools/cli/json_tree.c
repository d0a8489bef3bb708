#include "json_tree.h"

#include <inttypes.h>

#include "tool.h"
#include "util/text.h"

/* With more digits 0.1 becomes 0.10000000000000001. */
#define STYLE (JSON_INDENT(2) | JSON_REAL_PRECISION(15))

static json_t *need(json_t *value) {
    if (!value)
        tool_no_memory();
    return value;
}

static json_t *pack(const char *format, va_list args) {
    return need(json_vpack_ex(NULL, 0, format, args));
}

json_t *json_tree_pack(const char *format, ...) {
    return TOOL_VARIADIC(pack, format);
}

void json_tree_add(json_t *object, const char *format, ...) {
    json_auto_t *members = TOOL_VARIADIC(pack, format);
    if (json_object_update(object, members) != 0)
        tool_no_memory();
}

json_t *json_tree_string(const char *string) {
    if (!string)
        return json_null();
    json_t *value = json_string(string);
    if (value)
        return value;
    size_t size = 6 * strlen(string) + 3; /* \u00xx each, quotes, NUL */
    TOOL_TEMP char *escaped = tool_resize(NULL, size, 1);
    struct gps_text text = gps_text_on(escaped, size);
    gps_text_json(&text, string);
    return need(json_loads(escaped, JSON_DECODE_ANY, NULL));
}

json_t *json_tree_hex(uint64_t value) {
    char text[24];
    snprintf(text, sizeof(text), "0x%" PRIx64, value);
    return need(json_string(text));
}

json_t *json_tree_seconds(uint64_t nanos) {
    return need(json_real((double)(nanos / 1000000) / 1000));
}

void json_tree_append(json_t *array, json_t *value) {
    if (json_array_append_new(array, value) != 0)
        tool_no_memory();
}

void json_tree_print(FILE *out, json_t *tree) {
    json_dumpf(tree, out, STYLE);
    fputc('\n', out);
    json_decref(tree);
}

void json_tree_print_element(FILE *out, size_t before, json_t *element) {
    json_auto_t *array = json_tree_pack("[o]", element);
    TOOL_TEMP char *text = json_dumps(array, STYLE);
    if (!text)
        tool_no_memory();
    fprintf(out, "%s%.*s", before == 0 ? "[" : ",", (int)strlen(text) - 3, text + 1);
}
