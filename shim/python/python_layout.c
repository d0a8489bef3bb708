/*
 * Up to 3.12 the layout is fixed for each version, and the same on x86-64 and aarch64: a row has
 * the offsets from the headers of that version. From 3.13 on the interpreter has them
 * (_Py_DebugOffsets, at the beginning of _PyRuntime). Each version has that table in another order.
 */
#include "python_layout.h"

#include <string.h>

#include "util/peek.h"

enum { OLDEST = 8, NEWEST = 15, TELLS = 13 };

#define OBJECTS                                                                                    \
    .type = 8, .text = {.length = 16, .state = 32, .ascii = 48, .compact = 72}, .bytes = {16, 32}
#define OLD_CODE    .code = {.file = 104, .name = 112, .first_line = 40, .table = 120}
#define OLD_RUNTIME .runtime = {32}, .interpreter = {.next = 0, .threads = 8}
#define OLD_THREAD  .thread = {.next = 8, .interpreter = 16, .id = 176, .frame = 24}

static const struct gps_python_layout layouts[TELLS - OLDEST] = {
    [8 - OLDEST] = {OLD_RUNTIME, OLD_THREAD, OLD_CODE, OBJECTS,
                    .frame = {.back = 24, .code = 32, .at = 104}},
    [9 - OLDEST] = {OLD_RUNTIME, OLD_THREAD, OLD_CODE, OBJECTS,
                    .frame = {.back = 24, .code = 32, .at = 104}},
    [10 - OLDEST] = {OLD_RUNTIME, OLD_THREAD, OLD_CODE, OBJECTS,
                     .frame = {.back = 24, .code = 32, .at = 96}},
    [11 - OLDEST] = {.runtime = {40},
                     .interpreter = {.next = 0, .threads = 16},
                     .thread = {.next = 8, .interpreter = 16, .id = 152, .frame = 56},
                     .current = 8,
                     .frame = {.back = 48, .code = 32, .at = 56, .entry = 68},
                     .code = {112, 120, 72, 136, .instructions = 184},
                     OBJECTS},
    [12 - OLDEST] = {.runtime = {40},
                     .interpreter = {.next = 0, .threads = 72},
                     .thread = {.next = 8, .interpreter = 16, .id = 136, .frame = 56},
                     .current = 0,
                     .frame = {.back = 8, .code = 0, .at = 56, .entry = 70},
                     .code = {112, 120, 68, 136, .instructions = 192},
                     .type = 8,
                     .text = {16, 32, .ascii = 40, .compact = 56},
                     .bytes = {16, 32}},
};

/* --- from 3.13 on --- */

enum { VERSION = 1, FREE_THREADED = 2, WORDS = 93 /* of _Py_DebugOffsets, that matter */ };

/* The words of the table for each field: in 3.13, in 3.14 and in 3.15. */
static const struct {
    size_t field;
    uint8_t words[NEWEST + 1 - TELLS];
} told[] = {
#define AT(field) offsetof(struct gps_python_layout, field)
    {AT(runtime.interpreters), {5, 5, 5}},
    {AT(interpreter.next), {8, 8, 8}},
    {AT(interpreter.threads), {9, 9, 9}},
    {AT(thread.next), {21, 24, 24}},
    {AT(thread.interpreter), {22, 25, 25}},
    {AT(thread.frame), {23, 26, 26}},
    {AT(thread.id), {24, 27, 30}},
    {AT(frame.back), {29, 32, 40}},
    {AT(frame.code), {30, 33, 41}},
    {AT(frame.at), {31, 34, 42}},
    {AT(frame.entry), {33, 36, 44}},
    {AT(code.file), {35, 40, 48}},
    {AT(code.name), {36, 41, 49}},
    {AT(code.table), {38, 43, 51}},
    {AT(code.first_line), {39, 44, 52}},
    {AT(code.instructions), {43, 48, 56}},
    {AT(type), {45, 51, 59}},
    {AT(bytes.size), {65, 75, 87}},
    {AT(bytes.bytes), {66, 76, 88}},
    {AT(text.state), {68, 78, 90}},
    {AT(text.length), {69, 79, 91}},
    {AT(text.ascii), {70, 80, 92}},
};

/* From 3.14 on a free-threaded interpreter has other texts, and instructions of each thread. */
static bool offsets_are_readable(const uint64_t words[WORDS], unsigned version, uint64_t said) {
    return memcmp(words, "xdebugpy", 8) == 0 && words[VERSION] == said &&
           !(version >= 14 && words[FREE_THREADED]);
}

static bool python_layout_ask(const struct gps_python *python, uint64_t said,
                              struct gps_python_layout *layout) {
    enum { NOT_ASCII = 16 }; /* behind the ASCII structure, of all others: a length and a pointer */
    uint64_t words[WORDS];
    if (!gps_peek(python->runtime, words, sizeof(words)) ||
        !offsets_are_readable(words, python->version, said))
        return false;
    *layout = (struct gps_python_layout){.current = 0};
    for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        const uint64_t word = words[told[i].words[python->version - TELLS]];
        const uint16_t value = (uint16_t)word;
        if (word != value)
            return false;
        memcpy((char *)layout + told[i].field, &value, sizeof(value));
    }
    layout->text.compact = (uint16_t)(layout->text.ascii + NOT_ASCII);
    return true;
}

/* --- the version --- */

static uint64_t python_number_at(const struct gps_module *module, const char *name) {
    const uintptr_t address = (uintptr_t)gps_module_symbol(module, name);
    uint64_t number;
    return address && gps_peek(address, &number, sizeof(number)) ? number : 0;
}

/* From 3.11 on Py_Version has it, as PY_VERSION_HEX does: 0x030b02f0. Before, the newest function
 * of the C API that is there tells it. 0: another one, or not a final release. */
static unsigned version_of(const struct gps_module *module, uint64_t said) {
    if (said)
        return said >> 24 == 3 && (said & 0xf0) == 0xf0 ? said >> 16 & 0xff : 0;
    return gps_module_symbol(module, "Py_NewRef")         ? 10
           : gps_module_symbol(module, "PyFrame_GetCode") ? 9
           : gps_module_symbol(module, "Py_RunMain")      ? 8
                                                          : 0;
}

static bool read_layout(struct gps_python *python, uint64_t said) {
    python->version = version_of(&python->module, said);
    if (python->version < OLDEST || python->version > NEWEST)
        return false;
    python->table = python->version < 10    ? GPS_PYTHON_LNOTAB
                    : python->version == 10 ? GPS_PYTHON_LINETABLE
                                            : GPS_PYTHON_LOCATIONS;
    if (python->version >= TELLS)
        return python_layout_ask(python, said, &python->layout);
    python->layout = layouts[python->version - OLDEST];
    return true;
}

static uintptr_t python_variable(const struct gps_python *python, const char *name) {
    return (uintptr_t)gps_module_variable(&python->module, name);
}

enum gps_python_kind gps_python_in(const struct gps_module *module, struct gps_python *python) {
    if (!gps_module_symbol(module, "_PyRuntime"))
        return GPS_PYTHON_NONE;
    const uint64_t said = python_number_at(module, "Py_Version");
    *python = (struct gps_python){.module = *module};
    python->runtime = python_variable(python, "_PyRuntime");
    python->evaluate = (uintptr_t)gps_module_symbol(module, "_PyEval_EvalFrameDefault");
    python->code_type = python_variable(python, "PyCode_Type");
    python->frame_type = python_variable(python, "PyFrame_Type");
    python->text_type = python_variable(python, "PyUnicode_Type");
    python->bytes_type = python_variable(python, "PyBytes_Type");
    return python->evaluate && python->code_type && python->frame_type && python->text_type &&
                   python->bytes_type && read_layout(python, said)
               ? GPS_PYTHON_KNOWN
               : GPS_PYTHON_UNKNOWN;
}
