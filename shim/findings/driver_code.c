/* driver_code.c - see driver_code.h. The vendors' codes agree where they have the same number. */
#include "driver_code.h"

#include "driver/driver_ops.h"

static const struct {
    int first, last;
    const char *meaning;
} codes[] = {
    {1, 1, "an argument is not what the call takes"},
    {2, 2, "there is too little memory, or too few addresses"},
    {3, 3, "the driver is not initialized: "},
    {4, 4, "it has shut down, as it does at the end of the process"},
    {46, 46, "another process uses the GPU, whose compute mode lets in one"},
    {100, 101, "no GPU of this number is seen by this process"},
    {201, 201, "the thread has no context, or the context is not for this call"},
    {205, 205, "the memory could not be mapped: its file is not in this /dev/shm, or not readable"},
    {208, 208, "something is mapped there already"},
    {214, 214, "memory of the GPU is damaged (an uncorrectable ECC error)"},
    {217, 217, "the two GPUs cannot reach each other's memory"},
    {304, 304, "the operating system refused it something: descriptors, /dev/shm, /proc"},
    {400, 400, "the handle, the stream or the event is not valid here"},
    {700, 700, "an earlier kernel used an address that is not its own; its context is lost"},
    {702, 702, "an earlier kernel ran for too long; its context is lost"},
    {709, 709, "the context was destroyed, or its device was reset"},
    {710, 710, "an earlier kernel ended with an assertion; its context is lost"},
    {714, 719, "an earlier kernel or copy failed; its context is lost"},
    {800, 801, "the driver does not permit, or does not know, this here"},
    {802, 803, "the driver's parts do not work together (see: gpushare doctor)"},
    {805, 811, "the server of MPS refused it"},
    {900, 908, "the call is not allowed while a stream captures a graph"},
    {999, 999, "the driver does not say why"},
};

void gps_driver_code_add(struct gps_text *text, int code) {
    gps_text_add(text, "the driver's code is %lu", (uint64_t)(unsigned)code);
    for (unsigned i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (code >= codes[i].first && code <= codes[i].last)
            gps_text_strs(text, ": ", codes[i].meaning);
    if (code == GPS_NOT_INITIALIZED)
        gps_text_add(text, "%s, or any call of the runtime, comes first",
                     gps_operations->names->start);
}
