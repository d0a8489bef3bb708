#include "python_frame.h"

#include <pthread.h>
#include <string.h>

#include "util/peek.h"

enum { MAX_INTERPRETERS = 64, MAX_THREADS = 16384, MAX_FRAMES = 256 };
enum { MAX_OFFSET = 1 << 26, MAX_BEFORE = 16 }; /* of an instruction, in bytes */

static bool python_word_at(uintptr_t address, uintptr_t *word) {
    return gps_peek(address, word, sizeof(*word));
}

static bool has_type(const struct gps_python *python, uintptr_t object, uintptr_t type) {
    uintptr_t word;
    return object && python_word_at(object + python->layout.type, &word) && word == type;
}

/* --- the thread --- */

/* Whether this is the state of the current thread, of which each interpreter can have one. */
static bool is_this_thread(const struct gps_python *python, uintptr_t thread,
                           uintptr_t interpreter) {
    uintptr_t id, owner;
    return python_word_at(thread + python->layout.thread.id, &id) &&
           id == (uintptr_t)pthread_self() &&
           python_word_at(thread + python->layout.thread.interpreter, &owner) &&
           owner == interpreter;
}

/* The innermost frame of a thread. 0: it runs no Python code. */
static uintptr_t thread_frame(const struct gps_python *python, uintptr_t thread) {
    const bool indirect = python->version == 11 || python->version == 12;
    uintptr_t frame = 0;
    if (!python_word_at(thread + python->layout.thread.frame, &frame) || !frame ||
        (indirect && !python_word_at(frame + python->layout.current, &frame)))
        return 0;
    return frame;
}

/* `left`: how many threads may still be looked at, of all interpreters. */
static uintptr_t first_of_interpreter(const struct gps_python *python, uintptr_t interpreter,
                                      unsigned *left) {
    uintptr_t thread = 0, frame = 0;
    if (!python_word_at(interpreter + python->layout.interpreter.threads, &thread))
        return 0;
    for (; thread && !frame && *left > 0; --*left) {
        if (is_this_thread(python, thread, interpreter))
            frame = thread_frame(python, thread);
        if (!python_word_at(thread + python->layout.thread.next, &thread))
            break;
    }
    return frame;
}

static uintptr_t first_frame(const struct gps_python *python) {
    uintptr_t interpreter = 0, frame = 0;
    unsigned left = MAX_THREADS;
    if (!python_word_at(python->runtime + python->layout.runtime.interpreters, &interpreter))
        return 0;
    for (unsigned i = 0; interpreter && !frame && i < MAX_INTERPRETERS; i++) {
        frame = first_of_interpreter(python, interpreter, &left);
        if (!python_word_at(interpreter + python->layout.interpreter.next, &interpreter))
            break;
    }
    return frame;
}

/* --- its frames --- */

/* A frame as it lies in memory, up to the last of its members that matter: one read for all. */
struct record {
    uintptr_t back, code;
    uint8_t bytes[128];
};

/* From 3.14 on the lowest bits of a reference tell how it is counted. */
enum { TAG = 3 };

static uint16_t larger(uint16_t a, uint16_t b) {
    return a > b ? a : b;
}

static bool read_record(const struct gps_python *python, uintptr_t at, struct record *record) {
    const uint16_t back = python->layout.frame.back, code = python->layout.frame.code;
    const size_t size =
        sizeof(uintptr_t) +
        larger(larger(back, code), larger(python->layout.frame.at, python->layout.frame.entry));
    if (size > sizeof(record->bytes) || !gps_peek(at, record->bytes, size))
        return false;
    memcpy(&record->back, record->bytes + back, sizeof(record->back));
    memcpy(&record->code, record->bytes + code, sizeof(record->code));
    if (python->version >= 14)
        record->code &= ~(uintptr_t)TAG;
    return true;
}

/* From 3.12 on, behind a frame that was entered by itself comes one of the interpreter's own, which
 * is no Python frame. It is a variable of the function that runs Python frames. */
static bool record_is_interpreters(const struct gps_python *python, const struct record *record) {
    enum { OWNED_BY_INTERPRETER = 3 };
    return python->version >= 12 &&
           record->bytes[python->layout.frame.entry] >= OWNED_BY_INTERPRETER;
}

/* Up to 3.10 a frame is an object, and each has been entered by itself. */
static bool describe_object(const struct gps_python *python, const struct record *record,
                            struct gps_python_frame *frame) {
    uintptr_t type;
    int32_t index;
    memcpy(&type, record->bytes + python->layout.type, sizeof(type));
    memcpy(&index, record->bytes + python->layout.frame.at, sizeof(index));
    index = index < 0 ? 0 : index; /* not begun */
    frame->offset = (uint32_t)index * (python->version == 10 ? 2 : 1);
    frame->entry = true;
    return type == python->frame_type;
}

/* Before its first instruction a frame points in front of it. */
static bool describe_record(const struct gps_python *python, const struct record *record,
                            struct gps_python_frame *frame) {
    uintptr_t instruction;
    memcpy(&instruction, record->bytes + python->layout.frame.at, sizeof(instruction));
    const intptr_t offset =
        (intptr_t)(instruction - frame->code - python->layout.code.instructions);
    frame->offset = offset < 0 ? 0 : (uint32_t)offset;
    frame->entry = python->version == 11 && record->bytes[python->layout.frame.entry];
    return offset >= -MAX_BEFORE && offset < MAX_OFFSET;
}

static bool read_frame(const struct gps_python *python, const struct record *record,
                       struct gps_python_frame *frame) {
    *frame = (struct gps_python_frame){.code = record->code};
    return has_type(python, frame->code, python->code_type) &&
           (python->version <= 10 ? describe_object(python, record, frame)
                                  : describe_record(python, record, frame)) &&
           frame->offset < MAX_OFFSET;
}

unsigned gps_python_frames(const struct gps_python *python, struct gps_python_frame *frames,
                           unsigned max) {
    struct record record = {.back = first_frame(python)};
    unsigned count = 0;
    for (unsigned i = 0; record.back && count < max && i < MAX_FRAMES; i++) {
        const uintptr_t at = record.back;
        if (!read_record(python, at, &record))
            return 0;
        if (!record_is_interpreters(python, &record)) {
            if (!read_frame(python, &record, &frames[count++]))
                return 0;
        } else if (count > 0 && !frames[count - 1].entry) {
            frames[count - 1].entry = true;
            frames[count - 1].runner = at;
        }
    }
    return count;
}

/* --- describing a frame --- */

/* The characters of a string from `first` on, of one, two or four bytes each. */
struct characters {
    uint8_t bytes[4 * sizeof(((struct gps_frame *)0)->module)];
    unsigned width, count;
};

/* UTF-8; a code that is no character, as a surrogate for a byte of a file name, becomes '?'. */
static unsigned encode(uint32_t code, char out[4]) {
    if (!code || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff)
        code = '?';
    const unsigned length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    const unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (unsigned i = length; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[length] | code);
    return length;
}

static uint32_t character(const struct characters *from, unsigned i) {
    uint32_t code = 0;
    memcpy(&code, from->bytes + (size_t)i * from->width, from->width);
    return code;
}

/* The head of an object: its type and its length. */
struct head {
    uint8_t bytes[64];
};

static uintptr_t word_of(const uint8_t *bytes, uint16_t offset) {
    uintptr_t word;
    memcpy(&word, bytes + offset, sizeof(word));
    return word;
}

/* The part of a head that a str, or bytes, always has. */
static size_t head_size(const struct gps_python *python, bool text) {
    const struct gps_python_layout *layout = &python->layout;
    return text ? larger((uint16_t)(larger(layout->text.length, layout->type) + sizeof(uintptr_t)),
                         (uint16_t)(layout->text.state + sizeof(uint32_t)))
                : larger(layout->bytes.size, layout->type) + sizeof(uintptr_t);
}

/* Where the last `most` characters of a str, or the first ones, are. */
static bool find_characters(const struct gps_python *python, uintptr_t object,
                            const struct head *head, unsigned most, bool last,
                            struct characters *out, struct gps_piece *piece) {
    enum { KIND = 2, COMPACT = 5, ASCII = 6 }; /* bits of the state */
    const uintptr_t length = word_of(head->bytes, python->layout.text.length);
    uint32_t state;
    memcpy(&state, head->bytes + python->layout.text.state, sizeof(state));
    out->width = state >> KIND & 7;
    if (word_of(head->bytes, python->layout.type) != python->text_type ||
        (out->width != 1 && out->width != 2 && out->width != 4) || !(state >> COMPACT & 1) ||
        length > INT32_MAX)
        return false;
    out->count = length < most ? (unsigned)length : most;
    const uintptr_t skipped = last ? length - out->count : 0;
    const uintptr_t begin =
        state >> ASCII & 1 ? python->layout.text.ascii : python->layout.text.compact;
    *piece = (struct gps_piece){object + begin + skipped * out->width, out->bytes,
                                (size_t)out->count * out->width};
    return true;
}

/* Whether a character began before this byte. */
static bool byte_is_inside(char byte) {
    return (byte & 0xc0) == 0x80;
}

/* As much of a str as there is room for: its beginning, or its end. */
static bool put_text(const struct characters *characters, bool last, char *out, size_t size) {
    char text[sizeof(characters->bytes) + 1] = "";
    size_t from = 0, end = 0;
    for (unsigned i = 0; i < characters->count; i++)
        end += encode(character(characters, i), text + end);
    if (end >= size && last)
        from = end - (size - 1);
    else if (end >= size)
        end = size - 1;
    while (byte_is_inside(text[from]))
        from++;
    while (byte_is_inside(text[end]))
        end--;
    memcpy(out, text + from, end - from);
    out[end - from] = '\0';
    return end > from;
}

/* The members of a code object that matter: one read for all. */
struct code {
    uintptr_t file, name, lines;
    uint32_t first_line;
};

static bool read_code(const struct gps_python *python, uintptr_t at, struct code *code) {
    const uint16_t file = python->layout.code.file, name = python->layout.code.name,
                   lines = python->layout.code.table, first = python->layout.code.first_line;
    uint8_t bytes[256];
    const size_t size = sizeof(uintptr_t) + larger(larger(file, name), larger(lines, first));
    if (size > sizeof(bytes) || !gps_peek(at, bytes, size))
        return false;
    code->file = word_of(bytes, file);
    code->name = word_of(bytes, name);
    code->lines = word_of(bytes, lines);
    memcpy(&code->first_line, bytes + first, sizeof(code->first_line));
    return true;
}

/* Where the table of lines is, which may be empty. False: it is none, or too long. */
static bool find_table(const struct gps_python *python, uintptr_t object, const struct head *head,
                       uint8_t *table, struct gps_piece *piece) {
    const uintptr_t size = word_of(head->bytes, python->layout.bytes.size);
    *piece = (struct gps_piece){object + python->layout.bytes.bytes, table, size};
    return word_of(head->bytes, python->layout.type) == python->bytes_type &&
           size <= GPS_PYTHON_TABLE_MAX;
}

/* Three reads: the code object; the heads of file, name and table; their contents. */
bool gps_python_describe(const struct gps_python *python, const struct gps_python_frame *from,
                         uint8_t *table, struct gps_frame *frame) {
    enum { FILE_NAME, NAME, LINES, PIECES };
    struct head heads[PIECES] = {{{0}}};
    struct characters file, name;
    struct gps_piece has[PIECES];
    struct code code;
    *frame = (struct gps_frame){.address = 0};
    if (head_size(python, true) > sizeof(*heads) || head_size(python, false) > sizeof(*heads) ||
        !read_code(python, from->code, &code))
        return false;
    const struct gps_piece begin[PIECES] = {{code.file, &heads[FILE_NAME], head_size(python, true)},
                                            {code.name, &heads[NAME], head_size(python, true)},
                                            {code.lines, &heads[LINES], head_size(python, false)}};
    const unsigned there = gps_peek_all(begin, PIECES);
    if (there < LINES ||
        !find_characters(python, code.file, &heads[FILE_NAME], sizeof(frame->module), true, &file,
                         &has[FILE_NAME]) ||
        !find_characters(python, code.name, &heads[NAME], sizeof(frame->function), false, &name,
                         &has[NAME]))
        return false;
    const bool has_table =
        there == PIECES && find_table(python, code.lines, &heads[LINES], table, &has[LINES]);
    const unsigned whole = gps_peek_all(has, has_table ? PIECES : LINES);
    if (whole < LINES || !put_text(&file, true, frame->module, sizeof(frame->module)) ||
        !put_text(&name, false, frame->function, sizeof(frame->function)))
        return false;
    if (whole == PIECES)
        frame->line =
            gps_python_line(python->table, table, has[LINES].size, code.first_line, from->offset);
    return true;
}
