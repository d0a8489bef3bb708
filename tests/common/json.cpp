// json.cpp - see json.hpp.
#include "json.hpp"

#include <jansson.h>

static Json value_of(json_t *from);

static Json array_of(json_t *from) {
    Json value;
    for (size_t i = 0; i < json_array_size(from); i++)
        value.elements.push_back(value_of(json_array_get(from, i)));
    return value;
}

static Json object_of(json_t *from) {
    Json value;
    const char *key;
    json_t *member;
    json_object_foreach(from, key, member) {
        value.keys.push_back(key);
        value.members[key] = value_of(member);
    }
    return value;
}

static Json number_of(json_t *from) {
    Json value;
    const std::unique_ptr<char, decltype(&free)> text(json_dumps(from, JSON_ENCODE_ANY), &free);
    value.number = json_number_value(from);
    value.text = text.get();
    return value;
}

static Json value_of(json_t *from) {
    Json value;
    switch (json_typeof(from)) {
    case JSON_OBJECT:
        value = object_of(from);
        value.kind = Json::Object;
        break;
    case JSON_ARRAY:
        value = array_of(from);
        value.kind = Json::Array;
        break;
    case JSON_STRING:
        value.text.assign(json_string_value(from), json_string_length(from));
        value.kind = Json::String;
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        value = number_of(from);
        value.kind = Json::Number;
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        value.truth = json_is_true(from);
        value.kind = Json::Bool;
        break;
    case JSON_NULL:
        break;
    }
    return value;
}

Json Json::parse(const std::string &text) {
    json_error_t error;
    const std::unique_ptr<json_t, decltype(&json_decref)> root(
        json_loadb(text.data(), text.size(),
                   JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error),
        &json_decref);
    if (!root)
        throw std::runtime_error(error.text + (" at byte " + std::to_string(error.position)) +
                                 " of: " + text);
    return value_of(root.get());
}
