/* c_written.c - what written.h says of a box, for written_test.cpp: the header is C. */
#include "cuda/written.h"

uint64_t c_box_end(size_t x, size_t width, size_t height, size_t depth, size_t pitch);

uint64_t c_box_end(size_t x, size_t width, size_t height, size_t depth, size_t pitch) {
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstXInBytes = x,
                                .dstPitch = pitch,
                                .dstHeight = height,
                                .WidthInBytes = width,
                                .Height = height,
                                .Depth = depth};
    const struct gps_write write = gps_3d_of(&copy, NULL);
    return write.to + write.size;
}

uint64_t c_rows_read(size_t y, size_t width, size_t height, size_t pitch);
uint64_t c_rows_read(size_t y, size_t width, size_t height, size_t pitch) {
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcY = y,
                                .srcPitch = pitch,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .WidthInBytes = width,
                                .Height = height};
    const struct gps_write write = gps_2d_of(&copy, NULL);
    return write.size ? 0 : write.source + write.reads;
}
