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

uint64_t c_atomic_end(uint64_t address);
uint64_t c_atomic_end(uint64_t address) {
    CUstreamBatchMemOpParams words[2] = {{0}};
    struct gps_write nth;
    words[0].operation = CU_STREAM_MEM_OP_BARRIER;
    ((uint32_t *)&words[1])[0] = 8; /* CUDA 13.1's CU_STREAM_MEM_OP_ATOMIC_REDUCTION */
    ((uint64_t *)&words[1])[2] = address;
    const struct gps_write write = gps_words_of(words, 2, NULL);
    const uint64_t barrier = gps_write_nth(&write, 0, &nth)->size;
    const struct gps_write *one = gps_write_nth(&write, 1, &nth);
    return barrier || !one->rough || !one->lasting ? 0 : one->to + one->size;
}
