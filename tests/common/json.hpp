// json.hpp - JSON as values, read by jansson. What is not exactly one JSON value throws, and so
// does an object that has a member twice.
#pragma once

class Json {
  public:
    static Json parse(const std::string &text);
    enum Kind { Null, Bool, Number, String, Array, Object } kind = Null;
    bool truth = false;
    double number = 0;
    std::string text; // of a string, or of a number
    std::vector<Json> elements;
    std::map<std::string, Json> members;
    std::vector<std::string> keys; // of the members, as they are written

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
    bool is_null() const {
        return kind == Null;
    }
};
