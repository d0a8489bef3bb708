// written_test.cpp - which bytes of device memory a copy reads and writes (written.h): up to the
// last one, and no further.
extern "C" uint64_t c_box_end(size_t x, size_t width, size_t height, size_t depth, size_t pitch);
extern "C" uint64_t c_rows_read(size_t y, size_t width, size_t height, size_t pitch);
extern "C" uint64_t c_atomic_end(uint64_t address);

namespace {

TEST(Written, ABoxEndsWithTheLastByteOfItsLastRow) {
    EXPECT_EQ(c_box_end(2048, 2048, 256, 8, 4096), 4096u * 256 * 8);
    EXPECT_EQ(c_box_end(0, 2048, 256, 8, 4096), 4096u * 256 * 8 - 2048);
    EXPECT_EQ(c_box_end(2048, 2048, 256, 1, 4096), 4096u * 256);
    EXPECT_EQ(c_box_end(0, 4096, 256, 8, 4096), 4096u * 256 * 8);
}

TEST(Written, ABoxWithoutBytesWritesNothing) {
    EXPECT_EQ(c_box_end(0, 0, 256, 8, 4096), 0u);
    EXPECT_EQ(c_box_end(0, 0, 256, 1, 4096), 0u);
    EXPECT_EQ(c_box_end(0, 2048, 0, 8, 4096), 0u);
}

TEST(Written, RowsAreReadToTheLastByteOfTheLastOne) {
    EXPECT_EQ(c_rows_read(0, 2048, 256, 4096), 4096u * 256 - 2048);
    EXPECT_EQ(c_rows_read(3, 2048, 256, 4096), 4096u * 259 - 2048);
    EXPECT_EQ(c_rows_read(0, 2048, 256, 0), 2048u * 256);
    EXPECT_EQ(c_rows_read(3, 0, 256, 4096), 0u);
    EXPECT_EQ(c_rows_read(3, 2048, 0, 4096), 0u);
}

TEST(Written, AnAtomicOperationOfAStreamWritesAWord) {
    EXPECT_EQ(c_atomic_end(0x7000000), 0x7000008u);
}

} // namespace
