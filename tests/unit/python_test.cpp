// python_test.cpp - line tables and structures of CPython, as they are and as they must not be.
extern "C" {
#include "python/python_frame.h"
#include "python/python_layout.h"
#include "util/peek.h"
}

namespace {

// --- lines ---

uint32_t line(gps_python_table format, const std::vector<uint8_t> &table, uint32_t offset) {
    return gps_python_line(format, table.data(), table.size(), 100, offset);
}

TEST(PythonLine, OfLnotab) { // 6 bytes of line 100, 8 of 103, 300 of 101, then 500
    const std::vector<uint8_t> table = {6, 3, 8, 0xfe, 255, 0, 45, 127, 0, 127, 0, 127, 0, 18};
    const std::pair<uint32_t, uint32_t> lines[] = {{0, 100},  {4, 100},   {6, 103},   {12, 103},
                                                   {14, 101}, {312, 101}, {314, 500}, {9999, 500}};
    for (const auto &[offset, expected] : lines)
        EXPECT_EQ(line(GPS_PYTHON_LNOTAB, table, offset), expected) << offset;
    EXPECT_EQ(line(GPS_PYTHON_LNOTAB, {}, 20), 100u);
    EXPECT_EQ(line(GPS_PYTHON_LNOTAB, {4}, 20), 100u) << "half a pair is none";
}

TEST(PythonLine, OfLinetable) { // the second entry has no line, the third is empty
    const std::vector<uint8_t> table = {4, 1, 6, 0x80, 0, 5, 254, 0, 10, 0xff};
    const std::pair<uint32_t, uint32_t> lines[] = {{0, 101},  {2, 101},   {4, 0},     {8, 0},
                                                   {10, 106}, {262, 106}, {264, 105}, {274, 0}};
    for (const auto &[offset, expected] : lines)
        EXPECT_EQ(line(GPS_PYTHON_LINETABLE, table, offset), expected) << offset;
    EXPECT_EQ(line(GPS_PYTHON_LINETABLE, {}, 0), 0u);
}

uint8_t head(unsigned kind, unsigned units) {
    return static_cast<uint8_t>(0x80 | kind << 3 | (units - 1));
}

TEST(PythonLine, OfLocations) {
    const std::vector<uint8_t> table = {
        head(13, 1), 6,                // no columns: three lines on
        head(0, 2),  0x45,             // short: the same line
        head(12, 8), 1,    2,          // one line: two lines on
        head(15, 1),                   // none
        head(14, 1), 0x48, 2, 0, 1, 1, // long: 68 lines on
        head(13, 3), 7,                // three lines back
    };
    const std::pair<uint32_t, uint32_t> lines[] = {{0, 103},  {2, 103}, {5, 103},  {6, 105},
                                                   {21, 105}, {22, 0},  {24, 173}, {26, 170},
                                                   {31, 170}, {32, 0}};
    for (const auto &[offset, expected] : lines)
        EXPECT_EQ(line(GPS_PYTHON_LOCATIONS, table, offset), expected) << offset;
    EXPECT_EQ(line(GPS_PYTHON_LOCATIONS, {head(13, 1)}, 0), 100u) << "it ends too early";
    EXPECT_EQ(line(GPS_PYTHON_LOCATIONS, std::vector<uint8_t>(50, 0x7f), 0), 0u) << "no entry";
}

// --- memory ---

TEST(Peek, TellsWhatIsNotThere) {
    auto *pages = static_cast<char *>(
        mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char out[8] = {};
    mprotect(pages + 4096, 4096, PROT_NONE);
    memcpy(pages + 4088, "abcdefg", 8);
    errno = EXDEV;
    EXPECT_TRUE(gps_peek(reinterpret_cast<uintptr_t>(pages + 4088), out, sizeof(out)));
    EXPECT_STREQ(out, "abcdefg");
    EXPECT_FALSE(gps_peek(reinterpret_cast<uintptr_t>(pages + 4092), out, sizeof(out)));
    EXPECT_FALSE(gps_peek(reinterpret_cast<uintptr_t>(pages + 4096), out, sizeof(out)));
    EXPECT_FALSE(gps_peek(0, out, sizeof(out)));
    EXPECT_FALSE(gps_peek(~uintptr_t{7}, out, sizeof(out)));
    EXPECT_EQ(errno, EXDEV);
    munmap(pages, 8192);
}

// --- structures: an interpreter of this test's own, with frames like those of 3.11 ---

struct Object {
    uint64_t references;
    const void *type;
};
struct Text {
    Object head;
    int64_t length, hash;
    uint32_t state, unused;
    char ascii[512];
};
struct Bytes {
    Object head;
    int64_t size;
    uint8_t bytes[64];
};
struct Code {
    Object head;
    Text *file, *name;
    Bytes *table;
    int32_t first_line;
    uint16_t instructions[32];
};
struct Frame {
    Frame *back;
    Code *code;
    uint16_t *at;
    char entry;
};
struct Thread {
    Thread *next;
    const void *interpreter;
    pthread_t id;
    Frame **frame;
};
struct Interpreter {
    Interpreter *next;
    Thread *threads;
};

#define AT(type, member) static_cast<uint16_t>(offsetof(type, member))

class PythonFrame : public testing::Test {
  protected:
    PythonFrame() {
        python.version = 11;
        python.table = GPS_PYTHON_LOCATIONS;
        python.runtime = reinterpret_cast<uintptr_t>(&runtime);
        python.code_type = reinterpret_cast<uintptr_t>(&code_type);
        python.text_type = reinterpret_cast<uintptr_t>(&text_type);
        python.bytes_type = reinterpret_cast<uintptr_t>(&bytes_type);
        gps_python_layout &layout = python.layout;
        layout.interpreter = {AT(Interpreter, next), AT(Interpreter, threads)};
        layout.thread = {AT(Thread, next), AT(Thread, interpreter), AT(Thread, id),
                         AT(Thread, frame)};
        layout.frame = {AT(Frame, back), AT(Frame, code), AT(Frame, at), AT(Frame, entry)};
        layout.code = {AT(Code, file), AT(Code, name), AT(Code, first_line), AT(Code, table),
                       AT(Code, instructions)};
        layout.type = AT(Object, type);
        layout.text = {AT(Text, length), AT(Text, state), AT(Text, ascii), AT(Text, ascii[16])};
        layout.bytes = {AT(Bytes, size), AT(Bytes, bytes)};
        set(file, "/a/cam.py");
        set(name, "release");
    }
    void set(Text &text, const std::string &ascii) {
        text.head.type = &text_type;
        text.length = static_cast<int64_t>(ascii.size());
        text.state = 1u << 2 | 1u << 5 | 1u << 6;
        memcpy(text.ascii, ascii.data(), ascii.size());
    }
    template <typename Character>
    void set_wide(Text &text, const std::basic_string<Character> &wide) {
        text.head.type = &text_type;
        text.length = static_cast<int64_t>(wide.size());
        text.state = sizeof(Character) << 2 | 1u << 5;
        memcpy(text.ascii + 16, wide.data(), wide.size() * sizeof(Character));
    }
    unsigned count(unsigned max = 8) {
        return gps_python_frames(&python, read, max);
    }
    std::string described() {
        gps_frame frame = {};
        if (!count() || !gps_python_describe(&python, &read[0], room.data(), &frame))
            return "";
        return std::string(frame.function) + " at " + frame.module + ":" +
               std::to_string(frame.line);
    }

    const int code_type = 0, text_type = 0, bytes_type = 0;
    Interpreter main = {nullptr, &thread}, *runtime = &main;
    Thread thread = {nullptr, &main, pthread_self(), &current};
    Frame outer = {nullptr, &code, code.instructions, 1};
    Frame inner = {&outer, &code, code.instructions + 3, 0}, *current = &inner;
    Code code = {{1, &code_type}, &file, &name, &table, 7, {}};
    Text file = {}, name = {};
    Bytes table = {{1, &bytes_type}, 4, {head(13, 2), 2, head(13, 8), 8}}; // lines 8 and 12
    gps_python python = {};
    gps_python_frame read[8] = {};
    std::vector<uint8_t> room = std::vector<uint8_t>(GPS_PYTHON_TABLE_MAX);
};

TEST_F(PythonFrame, IsRead) {
    ASSERT_EQ(count(), 2u);
    EXPECT_FALSE(read[0].entry);
    EXPECT_TRUE(read[1].entry);
    EXPECT_EQ(read[0].offset, 6u);
    EXPECT_EQ(described(), "release at /a/cam.py:12");
    EXPECT_EQ(count(1), 1u);
    inner.at = code.instructions - 1; // before its first instruction
    EXPECT_EQ(described(), "release at /a/cam.py:8");
}

// A reference that is not counted is odd. The interpreter's own frames lie in its functions.
TEST_F(PythonFrame, OfLaterVersionsIsRead) {
    Frame base = {nullptr, nullptr, nullptr, 4}, entered = {&base, nullptr, nullptr, 3};
    python.version = 14;
    thread.frame = reinterpret_cast<Frame **>(&inner);
    inner.code = reinterpret_cast<Code *>(reinterpret_cast<uintptr_t>(&code) | 1);
    outer = {&entered, &code, code.instructions, 0};
    ASSERT_EQ(count(), 2u);
    EXPECT_EQ(described(), "release at /a/cam.py:12");
    EXPECT_FALSE(read[0].entry);
    EXPECT_EQ(read[0].runner, 0u);
    EXPECT_TRUE(read[1].entry);
    EXPECT_EQ(read[1].runner, reinterpret_cast<uintptr_t>(&entered));
    python.version = 13;
    EXPECT_EQ(count(), 0u) << "there the address is odd";
}

TEST_F(PythonFrame, BelongsToThisThread) {
    Thread other = {&thread, &main, pthread_self() + 1, &current};
    main.threads = &other;
    EXPECT_EQ(count(), 2u);
    thread.interpreter = &other; // no thread of that interpreter
    EXPECT_EQ(count(), 0u);
    Interpreter second = {&main, nullptr};
    runtime = &second;
    thread.interpreter = &main;
    EXPECT_EQ(count(), 2u);
    thread.id++;
    EXPECT_EQ(count(), 0u);
}

TEST_F(PythonFrame, ListsInACircleEnd) {
    Thread other = {nullptr, &main, pthread_self() + 1, &current};
    other.next = &other;
    main.threads = &other;
    EXPECT_EQ(count(), 0u);
    main.next = &main;
    EXPECT_EQ(count(), 0u);
    main.threads = &thread;
    outer.back = &inner;
    EXPECT_EQ(count(), 8u);
}

TEST_F(PythonFrame, WhatIsNotAsItShouldBeIsNoStack) {
    auto *nowhere = reinterpret_cast<char *>(16);
    outer.code = reinterpret_cast<Code *>(nowhere);
    EXPECT_EQ(count(), 0u) << "not even the frame inside of it";
    outer.code = reinterpret_cast<Code *>(&name);
    EXPECT_EQ(count(), 0u) << "of another type";
    outer.code = &code;
    outer.at = code.instructions + (1 << 26);
    EXPECT_EQ(count(), 0u);
    outer.at = code.instructions - 100;
    EXPECT_EQ(count(), 0u);
    outer.at = code.instructions;
    inner.back = reinterpret_cast<Frame *>(nowhere);
    EXPECT_EQ(count(), 0u);
    current = reinterpret_cast<Frame *>(nowhere);
    EXPECT_EQ(count(), 0u);
    current = nullptr;
    EXPECT_EQ(count(), 0u);
    thread.frame = nullptr;
    EXPECT_EQ(count(), 0u);
    runtime = reinterpret_cast<Interpreter *>(nowhere);
    EXPECT_EQ(count(), 0u);
}

TEST_F(PythonFrame, WithoutItsTableHasNoLine) {
    table.head.type = &text_type;
    EXPECT_EQ(described(), "release at /a/cam.py:0");
    table.head.type = &bytes_type;
    table.size = GPS_PYTHON_TABLE_MAX + 1;
    EXPECT_EQ(described(), "release at /a/cam.py:0");
    table.size = -1;
    EXPECT_EQ(described(), "release at /a/cam.py:0");
}

TEST_F(PythonFrame, TextsThatAreNoneEndIt) {
    name.head.type = &code_type;
    EXPECT_EQ(described(), "");
    set(name, "release");
    for (const uint32_t state : {0u, 1u << 2, 3u << 2 | 1u << 5, 7u << 2 | 1u << 5}) {
        name.state = state;
        EXPECT_EQ(described(), "") << state;
    }
    set(name, "");
    EXPECT_EQ(described(), "");
    set(name, "release");
    file.length = -1;
    EXPECT_EQ(described(), "");
    set(file, "/a/cam.py");
    file.length = int64_t{1} << 30; // its end is not there
    EXPECT_EQ(described(), "");
}

TEST_F(PythonFrame, TextsAreUtf8) {
    set_wide<char16_t>(name, u"\u0437\u0430");
    set_wide<char32_t>(file, U"/\U0001d4b8\u00e4.py");
    EXPECT_EQ(described(), "\u0437\u0430 at /\U0001d4b8\u00e4.py:12");
    set_wide<char>(name, "\xe4");
    EXPECT_EQ(described(), "\u00e4 at /\U0001d4b8\u00e4.py:12");
    set_wide<char16_t>(name, {u'a', 0xdc80});
    EXPECT_EQ(described(), "a? at /\U0001d4b8\u00e4.py:12") << "a byte that is no text";
    set_wide<char32_t>(name, {U'a', 0xffffffff});
    EXPECT_EQ(described(), "a? at /\U0001d4b8\u00e4.py:12") << "and a number that is none";
}

TEST_F(PythonFrame, LongTextsAreCut) {
    set(name, std::string(300, 'n'));
    set(file, std::string(300, 'f') + ".py");
    EXPECT_EQ(described(), std::string(63, 'n') + " at " + std::string(124, 'f') + ".py:12");
    std::u16string wide;
    for (int i = 0; i < 100; i++)
        wide += u'\u00e4';
    set_wide<char16_t>(name, wide); // two bytes each: no half one
    const std::string function = described().substr(0, 64);
    EXPECT_EQ(function, std::string(described(), 0, 62) + " a");
}

} // namespace
