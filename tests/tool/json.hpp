// json.hpp - a small strict JSON reader: what it accepts is JSON, anything else throws.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

class Json {
  public:
    static Json parse(const std::string &text);
    enum Kind { Null, Bool, Number, String, Array, Object } kind = Null;
    bool truth = false;
    double number = 0;
    std::string text; // of a string; of a number as written
    std::vector<Json> elements;
    std::map<std::string, Json> members;

    const Json &operator[](const std::string &key) const {
        return members.at(key);
    }
    const Json &operator[](size_t index) const {
        return elements.at(index);
    }
    size_t size() const {
        return kind == Object ? members.size() : elements.size();
    }
    bool has(const std::string &key) const {
        return members.count(key) != 0;
    }
};
