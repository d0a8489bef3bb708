/*
 * fuzz.h - what each fuzzer begins with: libFuzzer's entry, and what must hold.
 */
#pragma once

#include "../common/system_headers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds) {
    if (!holds)
        abort();
}
