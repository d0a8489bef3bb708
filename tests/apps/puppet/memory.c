/*
 * memory.c - allocations, and their handles for other processes.
 */
#include "puppet.h"

MAKER(malloc, u64, do_malloc(&made, number(w[2])))

static int c_pitch(char **w) {
    u64 pointer = 0;
    size_t pitch = 0;
    const int code = do_pitch(&pointer, &pitch, number(w[2]), number(w[3]));
    pointer_reply(w[1], code, pointer);
    say(" %zu", pitch);
    return code;
}

MAKER(pool, u64, do_pool(&made, number(w[2]), w[3] ? value(w[3]) : 0))
COMMAND(free, do_free(value(w[1])))
COMMAND(unpool, do_unpool(value(w[1])))
COMMAND(freeat, do_free(hex(w[1])))

static int get_at(u64 pointer) {
    unsigned char handle[64] = {0};
    return handle_reply(do_get(handle, pointer), handle);
}

COMMAND(get, get_at(value(w[1]) + number(w[2])))
COMMAND(getat, get_at(hex(w[1])))

static int c_open(char **w) {
    unsigned char handle[64] = {0};
    u64 pointer = 0;
    from_hex(w[2], handle, sizeof(handle));
    const int code = do_open(&pointer, handle, w[3] ? (unsigned)number(w[3]) : 1);
    return pointer_reply(w[1], code, pointer);
}

COMMAND(close, do_close(value(w[1])))
COMMAND(closeat, do_close(hex(w[1])))
COMMAND(fill, do_fill(value(w[1]) + number(w[4]), (int)number(w[2]), number(w[3])))

static int c_read(char **w) {
    unsigned char bytes[8192];
    const size_t count = number(w[3]);
    if (count > sizeof(bytes))
        return BAD;
    const int code = do_read(bytes, value(w[1]) + number(w[2]), count);
    if (!code)
        say_hex(bytes, count);
    return code;
}

static int c_write(char **w) {
    unsigned char bytes[8192];
    const size_t count = from_hex(w[3], bytes, sizeof(bytes));
    const int code = do_write(value(w[1]) + number(w[2]), bytes, count);
    return code ? code : do_sync();
}

MAKER(cumalloc, CUdeviceptr, CU(cuMemAlloc)(&made, number(w[2])))
COMMAND(cufree, (int)CU(cuMemFree)(value(w[1])))
COMMAND(cuclose, (int)CU(cuIpcCloseMemHandle)(value(w[1])))

const struct command memory_commands[] = {
    {"malloc", "NAME SIZE", c_malloc},
    {"pitch", "NAME WIDTH HEIGHT", c_pitch},
    {"pool", "NAME SIZE [STREAM]", c_pool},
    {"unpool", "NAME", c_unpool},
    {"free", "NAME", c_free},
    {"freeat", "HEX", c_freeat},
    {"get", "NAME [OFFSET]", c_get},
    {"getat", "HEX", c_getat},
    {"open", "NAME HANDLE [FLAGS]", c_open},
    {"close", "NAME", c_close},
    {"closeat", "HEX", c_closeat},
    {"fill", "NAME BYTE COUNT [OFFSET]", c_fill},
    {"read", "NAME OFFSET COUNT", c_read},
    {"write", "NAME OFFSET HEX", c_write},
    {"cumalloc", "NAME SIZE", c_cumalloc},
    {"cufree", "NAME", c_cufree},
    {"cuclose", "NAME", c_cuclose},
    {0},
};
