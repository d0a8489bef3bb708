/*
 * fuzz_python.c - any bytes as what CPython has in memory: libFuzzer's entry.
 *
 * The first byte picks what the rest is: a table of lines, or changes of a memory in which there
 * are frames.
 */
#include "fuzz.h"

#include "python/python_frame.h"
#include "python/python_layout.h"

enum { MEMORY = 4096, FRAMES = 16 };

static union {
    uint64_t words[MEMORY / 8];
    uint8_t bytes[MEMORY];
} memory;

static void fuzz_line(const uint8_t *data, size_t size) {
    uint32_t first, offset;
    if (size < 9)
        return;
    memcpy(&first, data + 1, sizeof(first));
    memcpy(&offset, data + 5, sizeof(offset));
    uint8_t *table = malloc(size - 9 + 1); /* its exact size: a read past the end is seen */
    need(table != NULL);
    memcpy(table, data + 9, size - 9);
    (void)gps_python_line(data[0] % 3, table, size - 9, first, offset % 65536);
    free(table);
}

/* --- frames --- */

static const struct gps_python_layout layout = {
    .runtime = {0},
    .interpreter = {.next = 0, .threads = 8},
    .thread = {.next = 0, .interpreter = 8, .id = 16, .frame = 24},
    .current = 0,
    .frame = {.back = 0, .code = 16, .at = 24, .entry = 32},
    .code = {.file = 16, .name = 24, .first_line = 32, .table = 40, .instructions = 48},
    .type = 8,
    .text = {.length = 16, .state = 24, .ascii = 32, .compact = 32},
    .bytes = {.size = 16, .bytes = 24},
};
enum { CODE_TYPE = 1, FRAME_TYPE, TEXT_TYPE, BYTES_TYPE };

/* Places in the memory. Up to 3.10, and from 3.13 on, a thread's frame is the inner one; in between
 * it is what lies behind that. */
enum {
    INTERPRETER = 64,
    THREAD = 96,
    INNER = 160,
    OUTER = 208,
    CODE = 256,
    FILE_NAME = 400,
    FUNCTION = 480,
    TABLE = 560,
};

static void put(size_t place, uint64_t word) {
    memory.words[place / 8] = word;
}

static uint64_t at(size_t place) {
    return (uint64_t)(uintptr_t)(memory.bytes + place);
}

static void put_frame(size_t place, uint64_t back, unsigned version) {
    put(place, back);
    put(place + 8, FRAME_TYPE);
    put(place + layout.frame.code, at(CODE) | (version >= 14)); /* which is not counted */
    put(place + layout.frame.at, version <= 10 ? 2 : at(CODE + layout.code.instructions + 2));
    put(place + layout.frame.entry, version == 11);
}

static void put_text(size_t place, const char *text) {
    put(place + 8, TEXT_TYPE);
    put(place + layout.text.length, strlen(text));
    put(place + layout.text.state, 1u << 2 | 1u << 5 | 1u << 6);
    memcpy(memory.bytes + place + layout.text.ascii, text, strlen(text));
}

/* Two frames, as they should be. */
static void build(unsigned version) {
    memset(&memory, 0, sizeof(memory));
    put(0, at(INTERPRETER));
    put(INTERPRETER + layout.interpreter.threads, at(THREAD));
    put(THREAD + layout.thread.interpreter, at(INTERPRETER));
    put(THREAD + layout.thread.id, (uint64_t)pthread_self());
    put(THREAD + layout.thread.frame, at(INNER));
    put_frame(INNER, at(OUTER), version);
    put_frame(OUTER, 0, version);
    put(CODE + 8, CODE_TYPE);
    put(CODE + layout.code.file, at(FILE_NAME));
    put(CODE + layout.code.name, at(FUNCTION));
    put(CODE + layout.code.first_line, 7);
    put(CODE + layout.code.table, at(TABLE));
    put_text(FILE_NAME, "/opt/cam.py");
    put_text(FUNCTION, "release");
    put(TABLE + 8, BYTES_TYPE);
    put(TABLE + layout.bytes.size, 8);
}

/* Each eleven bytes of the input change a word: its place, what it is, its value. */
static void spoil(const uint8_t *data, size_t size) {
    enum { RECORD = 11 };
    for (; size >= RECORD; data += RECORD, size -= RECORD) {
        uint16_t place;
        uint64_t value;
        memcpy(&place, data, sizeof(place));
        memcpy(&value, data + 3, sizeof(value));
        put(place % MEMORY, data[2] % 2 ? at(value % MEMORY) : value);
    }
}

static void check(const struct gps_frame *frame) {
    need(memchr(frame->module, 0, sizeof(frame->module)) != NULL && frame->module[0] != 0);
    need(memchr(frame->function, 0, sizeof(frame->function)) != NULL && frame->function[0] != 0);
}

static void fuzz_frames(const uint8_t *data, size_t size) {
    static uint8_t table[GPS_PYTHON_TABLE_MAX];
    struct gps_python_frame frames[FRAMES];
    struct gps_frame frame;
    if (size < 1)
        return;
    const unsigned version = 8 + data[0] % 8;
    build(version);
    spoil(data + 1, size - 1);
    const struct gps_python python = {.version = version,
                                      .table = data[0] % 3,
                                      .layout = layout,
                                      .runtime = (uintptr_t)memory.bytes,
                                      .code_type = CODE_TYPE,
                                      .frame_type = FRAME_TYPE,
                                      .text_type = TEXT_TYPE,
                                      .bytes_type = BYTES_TYPE};
    const unsigned count = gps_python_frames(&python, frames, FRAMES);
    need(count <= FRAMES && (size > 1 || count > 0)); /* what nothing has spoilt is read */
    for (unsigned i = 0; i < count; i++)
        if (gps_python_describe(&python, &frames[i], table, &frame))
            check(&frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 0 && data[0] % 2)
        fuzz_frames(data + 1, size - 1);
    else if (size > 0)
        fuzz_line(data + 1, size - 1);
    return 0;
}
