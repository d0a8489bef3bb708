/*
 * python_layout.c - see python_layout.h.
 *
 * Up to 3.12 the layout is fixed for each version, and the same on x86-64 and aarch64: a row has
 * what the headers of that version say. From 3.13 on the interpreter tells it (_Py_DebugOffsets, at
 * the beginning of _PyRuntime).
 */
#include "python_layout.h"

#include <stddef.h>
#include <string.h>

#include "util/peek.h"

enum { OLDEST = 8, NEWEST = 13, TELLS = 13 };

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

enum { VERSION = 1, WORDS = 71 /* of _Py_DebugOffsets */ };

/* Which of its words says what. */
static const struct {
    size_t field;
    unsigned word;
} told[] = {
#define TOLD(field, word)                                                                          \
    { offsetof(struct gps_python_layout, field), word }
    TOLD(runtime.interpreters, 5),
    TOLD(interpreter.next, 8),
    TOLD(interpreter.threads, 9),
    TOLD(thread.next, 21),
    TOLD(thread.interpreter, 22),
    TOLD(thread.frame, 23),
    TOLD(thread.id, 24),
    TOLD(frame.back, 29),
    TOLD(frame.code, 30),
    TOLD(frame.at, 31),
    TOLD(frame.entry, 33),
    TOLD(code.file, 35),
    TOLD(code.name, 36),
    TOLD(code.table, 38),
    TOLD(code.first_line, 39),
    TOLD(code.instructions, 43),
    TOLD(type, 45),
    TOLD(bytes.size, 65),
    TOLD(bytes.bytes, 66),
    TOLD(text.state, 68),
    TOLD(text.length, 69),
    TOLD(text.ascii, 70),
};

static bool ask(uintptr_t runtime, uint64_t version, struct gps_python_layout *layout) {
    enum { NOT_ASCII = 16 }; /* behind the ASCII structure, of all others: a length and a pointer */
    uint64_t words[WORDS];
    if (!gps_peek(runtime, words, sizeof(words)) || memcmp(words, "xdebugpy", 8) != 0 ||
        words[VERSION] != version)
        return false;
    *layout = (struct gps_python_layout){.current = 0};
    for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        const uint16_t value = (uint16_t)words[told[i].word];
        memcpy((char *)layout + told[i].field, &value, sizeof(value));
    }
    layout->text.compact = (uint16_t)(layout->text.ascii + NOT_ASCII);
    return true;
}

/* --- which version --- */

static uint64_t number_at(const struct gps_module *module, const char *name) {
    const uintptr_t address = (uintptr_t)gps_module_symbol(module, name);
    uint64_t number;
    return address && gps_peek(address, &number, sizeof(number)) ? number : 0;
}

/* From 3.11 on Py_Version says it, as PY_VERSION_HEX does: 0x030b02f0. Before, it is told by the
 * newest function of the C API that is there. 0: another one, or not a final release. */
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
        return ask(python->runtime, said, &python->layout);
    python->layout = layouts[python->version - OLDEST];
    return true;
}

static uintptr_t variable(const struct gps_python *python, const char *name) {
    return (uintptr_t)gps_module_variable(&python->module, name);
}

bool gps_python_in(const struct gps_module *module, struct gps_python *python) {
    if (!gps_module_symbol(module, "_PyRuntime"))
        return false;
    *python = (struct gps_python){.module = *module};
    python->runtime = variable(python, "_PyRuntime");
    python->evaluate = (uintptr_t)gps_module_symbol(module, "_PyEval_EvalFrameDefault");
    python->code_type = variable(python, "PyCode_Type");
    python->frame_type = variable(python, "PyFrame_Type");
    python->text_type = variable(python, "PyUnicode_Type");
    python->bytes_type = variable(python, "PyBytes_Type");
    return python->evaluate && python->code_type && python->frame_type && python->text_type &&
           python->bytes_type && read_layout(python, number_at(module, "Py_Version"));
}
