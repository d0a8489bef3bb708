/* Row 47: copies and memsets over several blocks in one reservation, and what is said of them. */
#include "check.h"
#include "place.h"
#include "step.h"

enum { LARGE = 32 * MIB, SMALL = 2 * MIB, BOTH = LARGE + SMALL, WHOLE = BOTH + 2 * MIB };

static CUdeviceptr place; /* a large block, a small one, and as much as that without any */

static unsigned char *host;

static int64_t fill_it(CUdeviceptr at, size_t size, int value) {
    const CUresult result = gpu.cuMemsetD8_v2(at, (unsigned char)value, size);
    return result ? result : gpu.cuCtxSynchronize();
}

/* Both ends of what was read, or minus the code. */
static int64_t ends(CUdeviceptr at, size_t size) {
    memset(host, 0, size);
    const CUresult result = gpu.cuMemcpyDtoH_v2(host, at, size);
    return result ? -(int64_t)result : host[0] << 8 | host[size - 1];
}

static int64_t put(CUdeviceptr at, size_t size, int value) {
    memset(host, value, size);
    const CUresult result = gpu.cuMemcpyHtoD_v2(at, host, size);
    return result ? result : gpu.cuCtxSynchronize();
}

static void check_ranges(CUdeviceptr at) {
    CUdeviceptr base = 0, start = 0;
    size_t size = 0, whole = 0;
    check("an address in the second block: range", 0,
          gpu.cuMemGetAddressRange_v2(&base, &size, at));
    check("  that block: base", LARGE, (int64_t)(base - place));
    check("  size", SMALL, (int64_t)size);
    check("  attribute: start", 0,
          gpu.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at));
    check("  of the reservation", 0, (int64_t)(start - place));
    check("  attribute: size", 0,
          gpu.cuPointerGetAttribute(&whole, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at));
    check("  of the reservation", WHOLE, (int64_t)whole);
}

static void check_writable(void) {
    check("both writable: host to device", 0, put(place, BOTH, 71));
    check("  device to host", 71 << 8 | 71, ends(place, BOTH));
    check("  memset over the border", 0, fill_it(place + LARGE - MIB, 2 * MIB, 72));
    check("  reads", 71 << 8 | 72, ends(place, LARGE + MIB));
    check("  device to device over the border", 0,
          gpu.cuMemcpyDtoD_v2(place, place + LARGE - MIB, 2 * MIB));
    check("  reads", 72 << 8 | 72, ends(place, 2 * MIB));
}

static void check_half_open(void) {
    check("the first read-only", 0, place_allow(place, LARGE, (CUmemAccess_flags)READ));
    check("  device to host over both", 72 << 8 | 71, ends(place, BOTH));
    check("  device to device, into the second", 0,
          gpu.cuMemcpyDtoD_v2(place + LARGE, place + 2 * MIB, MIB));
    check("  host to device over the border", 1, put(place + LARGE - MIB, 2 * MIB, 73));
    check("  memset over the border", 1, fill_it(place + LARGE - MIB, 2 * MIB, 74));
    check("  nothing was written", 71 << 8 | 71, ends(place + LARGE, MIB));
}

static void check_unbacked(CUdeviceptr at) {
    CUdeviceptr base;
    size_t size;
    int type;
    check("an unbacked address: host to device", 1, put(at, MIB, 75));
    check("  memset", 1, fill_it(at, MIB, 75));
    check("  device to host", -1, ends(at, MIB));
    check("  host to device from before it", 1, put(at - MIB, 2 * MIB, 75));
    check("  nothing was written", 71 << 8 | 71, ends(at - MIB, MIB));
    check("  range", 500, gpu.cuMemGetAddressRange_v2(&base, &size, at));
    check("  attribute", 1, gpu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
    check("  no harm was done", 72 << 8 | 71, ends(place, BOTH));
}

static void row_47(void) {
    host = malloc(BOTH);
    check("start", 0, host ? (int)place_start() : -1);
    place = place_reserve(WHOLE);
    place_block(place, LARGE);
    place_block(place + LARGE, SMALL);
    check_ranges(place + LARGE + 100);
    check_writable();
    check_half_open();
    check_unbacked(place + BOTH);
    free(host);
}

void block_rows(void) {
    check_in_child("47", row_47);
}
