/*
 * puppet.h - what the files of puppet/ share.
 *
 * puppet is a CUDA program that does what it is told: one command a line on stdin, one reply a line
 * on stdout, "<code> <values...>".
 *
 * It stands for the programs that users have: it knows nothing of gpushare. Built with the shared
 * and with the static runtime, and, as PUPPET_DRIVER, with the driver API alone; commands that are
 * the runtime's then become what the runtime makes of them. Commands that begin with cu or ctx are
 * the driver's in all three. `help` lists them. With VENDOR_HIP the runtime is AMD's, and there are
 * no commands of the driver's.
 */
#pragma once

#include "../vendor.h"

#include "../../common/system_headers.h"
#include <cuda.h>

enum { LINE = 1 << 16, WORDS = 64 };
enum { BAD = -1, QUIT = -2, SAID = -3 /* the reply is there already */ };
typedef unsigned long long u64; /* as CUdeviceptr */

/* --- commands: each answers a code and may say more --- */

struct command {
    const char *name, *arguments;
    int (*fn)(char **words);
};

/* One table a file; a row without a name ends it. */
extern const struct command context_commands[], memory_commands[], address_commands[],
    copy_commands[], event_commands[], stream_commands[], graph_commands[], newer_commands[],
    vmm_commands[], churn_commands[], many_commands[], process_commands[], want_commands[],
    around_commands[];

#define COMMAND(name, call)                                                                        \
    static int c_##name(char **w) {                                                                \
        return call;                                                                               \
    }
/* One that makes something, which its first word names. */
#define MAKER(name, type, call)                                                                    \
    static int c_##name(char **w) {                                                                \
        type made = 0;                                                                             \
        const int code = (int)call;                                                                \
        return pointer_reply(w[1], code, made);                                                    \
    }

/* Leaves the reply, without its newline, in `reply`; QUIT when main is to return. */
int obey(char *line);
/* The lines of stdin. */
void obey_all(void);

/* --- words, and what it holds by name --- */

u64 value(const char *name);
void keep(const char *name, u64 what);
/* A NULL word stands for one that was left out. */
u64 number(const char *word);
u64 hex(const char *word);
size_t from_hex(const char *word, unsigned char *bytes, size_t max);
/* NAME[+OFFSET], or a number */
u64 argument(char *word);
/* The default one is called - */
CUstream stream_of(const char *name);
/* In one line, which the next call makes another. */
char *join(char **w);

/* --- replies: each thread has one of its own --- */

extern _Thread_local char reply[LINE];
extern _Thread_local size_t reply_length;
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
void say_hex(const unsigned char *bytes, size_t count);
int pointer_reply(const char *name, int code, u64 pointer);
int handle_reply(int code, const unsigned char handle[64]);
void put(const char *text, size_t count);

/* --- time --- */

int64_t now_ns(void);
void nap(u64 ms);

/* --- the driver --- */

/* By its ABI's name, per-thread variants too. */
void *abi(const char *name);
#define TEXT_OF(x) #x
#ifdef PUPPET_DRIVER
#define CU(fn) fn
#else
#define CU(fn) ((__typeof__(fn) *)abi(TEXT_OF(fn)))
#endif
/* Those of `kernels`, and what `more` made last. */
extern CUmodule kernels;
extern CUgraphNode last_node;
/* As a node of a graph has it. */
CUDA_MEMCPY3D device_copy(u64 to, u64 from, size_t count);

/* --- the runtime, or what it makes of its calls --- */

int do_device(int device);
int do_peer(int device);
int do_count(int *count);
int do_sync(void);
int do_reset(void);
int do_info(size_t *left, size_t *total);
int do_malloc(u64 *p, size_t size);
int do_pitch(u64 *p, size_t *pitch, size_t width, size_t height);
int do_free(u64 p);
int do_pool(u64 *p, size_t size, u64 stream);
int do_unpool(u64 p);
int do_get(void *handle, u64 p);
int do_open(u64 *p, const void *bytes, unsigned flags);
int do_close(u64 p);
int do_fill(u64 p, int byte, size_t count);
int do_read(void *to, u64 p, size_t count);
int do_write(u64 p, const void *from, size_t count);
int do_range(u64 *base, size_t *size, u64 p);
int do_evcreate(u64 *event, unsigned flags);
int do_evget(void *handle, u64 event);
int do_evopen(u64 *event, const void *bytes);
int do_evdestroy(u64 event);
int do_evrecord(u64 event);
int do_evquery(u64 event);
int do_evsync(u64 event);
int do_host(void (*fn)(void *), void *arg);
