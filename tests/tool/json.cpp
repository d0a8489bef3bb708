#include "json.hpp"

#include <cctype>
#include <cstdlib>
#include <stdexcept>

namespace {

struct Reader {
    const std::string &text;
    size_t at = 0;

    [[noreturn]] void fail(const char *why) const {
        throw std::runtime_error(std::string(why) + " at " + std::to_string(at) + " in " + text);
    }
    char peek() const {
        return at < text.size() ? text[at] : '\0';
    }
    void blanks() {
        while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r')
            at++;
    }
    void expect(const std::string &word) {
        if (text.compare(at, word.size(), word) != 0)
            fail(("expected " + word).c_str());
        at += word.size();
    }
    void digits() {
        if (!isdigit(static_cast<unsigned char>(peek())))
            fail("expected a digit");
        while (isdigit(static_cast<unsigned char>(peek())))
            at++;
    }

    Json number() {
        Json value;
        size_t start = at;
        if (peek() == '-')
            at++;
        if (peek() == '0')
            at++;
        else
            digits();
        if (peek() == '.')
            at++, digits();
        value.kind = Json::Number;
        value.text = text.substr(start, at - start);
        value.number = strtod(value.text.c_str(), nullptr);
        return value;
    }

    std::string string() {
        std::string value;
        expect("\"");
        while (peek() != '"') {
            if (at >= text.size() || static_cast<unsigned char>(peek()) < 0x20)
                fail("bad string");
            if (peek() != '\\') {
                value += text[at++];
                continue;
            }
            at++;
            if (peek() == 'u') {
                for (size_t i = 1; i <= 4; i++)
                    if (!isxdigit(static_cast<unsigned char>(text.at(at + i))))
                        fail("bad \\u");
                value += '?';
                at += 5;
            } else if (std::string("\"\\/bfnrt").find(peek()) != std::string::npos) {
                value += text[at++];
            } else {
                fail("bad escape");
            }
        }
        at++;
        return value;
    }

    Json array() {
        Json value;
        value.kind = Json::Array;
        expect("[");
        blanks();
        for (bool first = true; peek() != ']'; first = false) {
            if (!first)
                expect(",");
            value.elements.push_back(any());
        }
        at++;
        return value;
    }

    Json object() {
        Json value;
        value.kind = Json::Object;
        expect("{");
        blanks();
        for (bool first = true; peek() != '}'; first = false) {
            if (!first)
                expect(",");
            blanks();
            std::string key = string();
            blanks();
            expect(":");
            if (!value.members.emplace(key, any()).second)
                fail("a member twice");
        }
        at++;
        return value;
    }

    Json word(const char *name, Json::Kind kind, bool truth) {
        Json value;
        expect(name);
        value.kind = kind;
        value.truth = truth;
        return value;
    }

    Json any() {
        Json value;
        blanks();
        switch (peek()) {
        case '[':
            value = array();
            break;
        case '{':
            value = object();
            break;
        case 't':
            value = word("true", Json::Bool, true);
            break;
        case 'f':
            value = word("false", Json::Bool, false);
            break;
        case 'n':
            value = word("null", Json::Null, false);
            break;
        case '"':
            value.kind = Json::String, value.text = string();
            break;
        default:
            value = number();
        }
        blanks();
        return value;
    }
};

} // namespace

Json Json::parse(const std::string &text) {
    Reader reader{text};
    Json value = reader.any();
    if (reader.at != text.size())
        reader.fail("more after the end");
    return value;
}
