// strict_json.h - a small JSON reader for tests: accepts RFC 8259 and nothing else.
#ifndef GPS_TESTS_STRICT_JSON_H
#define GPS_TESTS_STRICT_JSON_H

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct Json {
    enum Kind { Null, Bool, Number, String, Array, Object } kind = Null;
    std::string text; // of a string, decoded to UTF-8; of a number, as written
    std::vector<Json> items;
    std::vector<std::pair<std::string, Json>> members;

    const Json &operator[](const std::string &key) const {
        for (const auto &member : members)
            if (member.first == key)
                return member.second;
        throw std::runtime_error("no member " + key);
    }
    std::vector<std::string> keys() const {
        std::vector<std::string> all;
        for (const auto &member : members)
            all.push_back(member.first);
        return all;
    }
    bool is_null() const {
        return kind == Null;
    }
};

class JsonReader {
  public:
    // Throws std::runtime_error when the text is not exactly one JSON value.
    static Json read(const std::string &text) {
        JsonReader reader(text);
        Json value = reader.value();
        reader.blanks();
        if (reader.at_ != text.size())
            reader.fail("text behind the value");
        return value;
    }

  private:
    explicit JsonReader(const std::string &text) : text_(text) {
    }

    [[noreturn]] void fail(const std::string &what) const {
        throw std::runtime_error(what + " at byte " + std::to_string(at_) + " of: " + text_);
    }
    char peek() const {
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    char take() {
        if (at_ == text_.size())
            fail("unexpected end");
        return text_[at_++];
    }
    void expect(const std::string &what) {
        if (text_.compare(at_, what.size(), what) != 0)
            fail("expected " + what);
        at_ += what.size();
    }
    void blanks() {
        while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')
            at_++;
    }

    Json value() {
        Json result;
        blanks();
        switch (peek()) {
        case '{':
            return object();
        case '[':
            return array();
        case '"':
            result.kind = Json::String;
            result.text = string();
            return result;
        case 't':
            expect("true");
            result.kind = Json::Bool;
            return result;
        case 'f':
            expect("false");
            result.kind = Json::Bool;
            return result;
        case 'n':
            expect("null");
            return result;
        default:
            return number();
        }
    }

    Json object() {
        Json result;
        result.kind = Json::Object;
        expect("{");
        blanks();
        for (bool first = true; peek() != '}'; first = false) {
            if (!first)
                expect(",");
            blanks();
            std::string key = string();
            for (const auto &member : result.members)
                if (member.first == key)
                    fail("member twice: " + key);
            blanks();
            expect(":");
            result.members.emplace_back(key, value());
            blanks();
        }
        expect("}");
        return result;
    }

    Json array() {
        Json result;
        result.kind = Json::Array;
        expect("[");
        blanks();
        for (bool first = true; peek() != ']'; first = false) {
            if (!first)
                expect(",");
            result.items.push_back(value());
            blanks();
        }
        expect("]");
        return result;
    }

    Json number() {
        Json result;
        size_t start = at_;
        result.kind = Json::Number;
        if (peek() == '-')
            at_++;
        if (peek() == '0')
            at_++;
        else
            digits();
        if (peek() == '.') {
            at_++;
            digits();
        }
        if (peek() == 'e' || peek() == 'E') {
            at_++;
            if (peek() == '+' || peek() == '-')
                at_++;
            digits();
        }
        result.text = text_.substr(start, at_ - start);
        return result;
    }
    void digits() {
        if (peek() < '0' || peek() > '9')
            fail("expected a digit");
        while (peek() >= '0' && peek() <= '9')
            at_++;
    }

    std::string string() {
        std::string result;
        expect("\"");
        while (peek() != '"') {
            unsigned char c = static_cast<unsigned char>(take());
            if (c < 0x20)
                fail("control character in a string");
            if (c == '\\')
                result += escape();
            else if (c < 0x80)
                result += static_cast<char>(c);
            else
                result += sequence(c);
        }
        at_++;
        return result;
    }

    std::string escape() {
        char c = take();
        switch (c) {
        case '"':
        case '\\':
        case '/':
            return std::string(1, c);
        case 'b':
            return "\b";
        case 'f':
            return "\f";
        case 'n':
            return "\n";
        case 'r':
            return "\r";
        case 't':
            return "\t";
        case 'u':
            return code_point();
        default:
            fail("unknown escape");
        }
    }

    std::string code_point() {
        unsigned code = 0;
        for (int i = 0; i < 4; i++) {
            char c = take();
            if (!isxdigit(static_cast<unsigned char>(c)))
                fail("bad \\u");
            code = code * 16 +
                   static_cast<unsigned>(std::strtoul(std::string(1, c).c_str(), nullptr, 16));
        }
        if (code >= 0xd800 && code < 0xe000)
            fail("surrogate"); // never written by gpushare
        if (code < 0x80)
            return std::string(1, static_cast<char>(code));
        if (code < 0x800)
            return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
        return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
                static_cast<char>(0x80 | (code & 0x3f))};
    }

    // The rest of a UTF-8 sequence, checked.
    std::string sequence(unsigned char first) {
        size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
        uint32_t code = first & (0x3fu >> more);
        std::string result(1, static_cast<char>(first));
        if (first < 0xc2 || first > 0xf4)
            fail("not UTF-8");
        for (size_t i = 0; i < more; i++) {
            unsigned char c = static_cast<unsigned char>(take());
            if ((c & 0xc0) != 0x80)
                fail("not UTF-8");
            code = code << 6 | (c & 0x3fu);
            result += static_cast<char>(c);
        }
        if ((more == 2 && code < 0x800) || (more == 3 && code < 0x10000) || code > 0x10ffff ||
            (code >= 0xd800 && code < 0xe000))
            fail("not UTF-8");
        return result;
    }

    const std::string &text_;
    size_t at_ = 0;
};

#endif
