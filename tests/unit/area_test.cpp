// area_test.cpp - allocations in blocks: how they are cut, found, and what of them is filled.
extern "C" {
#include "merge/area.h"
}

namespace {

constexpr uint64_t MiB = UINT64_C(1) << 20;

std::vector<gps_block> blocks_of(uint64_t extent) {
    std::vector<gps_block> blocks(gps_area_cut(0, extent, GPS_MERGE_LARGE, nullptr));
    EXPECT_EQ(gps_area_cut(0, extent, GPS_MERGE_LARGE, blocks.data()), blocks.size());
    return blocks;
}

std::vector<uint64_t> sizes_of(uint64_t extent) {
    std::vector<uint64_t> sizes;
    for (const gps_block &block : blocks_of(extent))
        sizes.push_back(block.size / MiB);
    return sizes;
}

TEST(AreaCut, LargeBlocksThenTheLargestThatFit) {
    using Sizes = std::vector<uint64_t>;
    EXPECT_EQ(sizes_of(2 * MiB), (Sizes{2}));
    EXPECT_EQ(sizes_of(4 * MiB), (Sizes{4}));
    EXPECT_EQ(sizes_of(20 * MiB), (Sizes{16, 4}));
    EXPECT_EQ(sizes_of(62 * MiB), (Sizes{32, 16, 8, 4, 2}));
    EXPECT_EQ(sizes_of(64 * MiB), (Sizes{32, 32}));
}

TEST(AreaCut, CoversAllOfItWithoutGaps) {
    for (uint64_t extent = 2 * MiB; extent < 200 * MiB; extent += 2 * MiB) {
        uint64_t at = 0;
        for (const gps_block &block : blocks_of(extent)) {
            EXPECT_EQ(block.at, at);
            EXPECT_EQ(block.state, GPS_BLOCK_UNBACKED);
            EXPECT_EQ(block.slot, GPS_NO_SLOT);
            EXPECT_EQ(block.size & (block.size - 1), 0u);
            at += block.size;
        }
        EXPECT_EQ(at, extent);
    }
}

// Areas at places of their own; what is not removed is when the test ends.
struct Areas : testing::Test {
    std::vector<gps_area *> all;
    const gps_rule rule = {};

    gps_area *add(uint64_t pointer, uint64_t extent) {
        gps_area *area = gps_area_new(extent, GPS_MERGE_LARGE);
        area->pointer = pointer;
        area->size = extent - 1000;
        area->rule = &rule;
        area->lazy = true;
        gps_area_add(area);
        all.push_back(area);
        return area;
    }
    void remove(size_t i) {
        gps_area_remove(all[i]);
        free(all[i]);
        all.erase(all.begin() + static_cast<long>(i));
    }
    ~Areas() override {
        while (!all.empty())
            remove(0);
    }
};

constexpr uint64_t BASE = UINT64_C(0x7f0000000000);

TEST_F(Areas, AreFoundByAnyAddressInThem) {
    gps_area *second = add(BASE + 100 * MiB, 20 * MiB);
    gps_area *first = add(BASE, 40 * MiB);
    EXPECT_EQ(gps_area_at(BASE - 1), nullptr);
    EXPECT_EQ(gps_area_at(BASE), first);
    EXPECT_EQ(gps_area_at(BASE + 40 * MiB - 1), first);
    EXPECT_EQ(gps_area_at(BASE + 40 * MiB), nullptr);
    EXPECT_EQ(gps_area_at(BASE + 110 * MiB), second);
    EXPECT_EQ(gps_area_at(BASE + 120 * MiB), nullptr);
    EXPECT_EQ(gps_area_next(nullptr), first);
    EXPECT_EQ(gps_area_next(first), second);
    EXPECT_EQ(gps_area_next(second), nullptr);
    const uint64_t serial = first->serial;
    EXPECT_NE(serial, second->serial);
    EXPECT_EQ(gps_area_of(BASE + 1, serial), first);
    EXPECT_EQ(gps_area_of(BASE + 110 * MiB, serial), nullptr);
    remove(1);
    EXPECT_EQ(gps_area_of(BASE, serial), nullptr);
    EXPECT_EQ(gps_area_at(BASE), nullptr);
    EXPECT_NE(add(BASE, 40 * MiB)->serial, serial) << "at its place comes another one";
    EXPECT_EQ(gps_area_of(BASE, serial), nullptr);
}

TEST_F(Areas, AreManyInAnyOrder) {
    for (uint64_t i = 0; i < 500; i++)
        add(BASE + i * 377 % 500 * 4 * MiB, 2 * MiB);
    for (uint64_t i = 0; i < 500; i++) {
        gps_area *area = gps_area_at(BASE + i * 4 * MiB + MiB);
        ASSERT_NE(area, nullptr);
        EXPECT_EQ(area->pointer, BASE + i * 4 * MiB);
        EXPECT_EQ(gps_area_at(BASE + i * 4 * MiB + 3 * MiB), nullptr);
    }
    unsigned count = 0;
    for (gps_area *area = gps_area_next(nullptr); area; area = gps_area_next(area))
        count++;
    EXPECT_EQ(count, 500u);
}

TEST_F(Areas, NearMeansThatOneMayOverlap) {
    EXPECT_FALSE(gps_area_near(BASE, 1)) << "there is none";
    EXPECT_FALSE(gps_area_near(0, UINT64_C(1) << 40));
    add(BASE, 2 * MiB);
    add(BASE + 10 * MiB, 2 * MiB);
    EXPECT_FALSE(gps_area_near(BASE - MiB, MiB));
    EXPECT_TRUE(gps_area_near(BASE - MiB, MiB + 1));
    EXPECT_TRUE(gps_area_near(BASE + 12 * MiB - 1, 1));
    EXPECT_FALSE(gps_area_near(BASE + 12 * MiB, MiB));
    remove(1);
    EXPECT_FALSE(gps_area_near(BASE + 10 * MiB, MiB));
    remove(0);
    EXPECT_FALSE(gps_area_near(BASE, MiB));
}

TEST_F(Areas, ARangeTouchesTheseBlocks) {
    const gps_area *area = add(BASE, 62 * MiB); // 32, 16, 8, 4, 2
    const struct {
        uint64_t at, size;
        unsigned first, end;
    } cases[] = {{0, 1, 0, 1},
                 {0, 32 * MiB, 0, 1},
                 {0, 32 * MiB + 1, 0, 2},
                 {32 * MiB - 1, 2, 0, 2},
                 {32 * MiB, 16 * MiB, 1, 2},
                 {48 * MiB + 1, 8 * MiB, 2, 4},
                 {61 * MiB, MiB, 4, 5},
                 {0, 62 * MiB, 0, 5},
                 {0, 100 * MiB, 0, 5}};
    for (const auto &one : cases) {
        unsigned first = 77, end = 77;
        gps_area_blocks(area, BASE + one.at, one.size, &first, &end);
        EXPECT_EQ(first, one.first) << one.at;
        EXPECT_EQ(end, one.end) << one.at;
    }
}

TEST_F(Areas, ABlockIsFoundByWhereItBegins) {
    gps_area *area = add(BASE, 20 * MiB), *found;
    EXPECT_EQ(gps_area_block(BASE + 16 * MiB, area->serial, &found), &area->blocks[1]);
    EXPECT_EQ(found, area);
    EXPECT_EQ(gps_area_block(BASE + 4 * MiB, area->serial, &found), nullptr);
    EXPECT_EQ(gps_area_block(BASE, area->serial + 1, &found), nullptr);
}

TEST_F(Areas, WhatIsFilledIsKnownByTheSixtyFourth) {
    const gps_area *area = add(BASE, 34 * MiB); // 32 and 2: parts of 512 and 32 KiB
    const gps_block *large = &area->blocks[0], *small = &area->blocks[1];
    const uint64_t every = ~UINT64_C(0), half = 512 * 1024;
    EXPECT_EQ(gps_area_bits(area, large, BASE, 1), 1u);
    EXPECT_EQ(gps_area_bits(area, large, BASE + half - 1, 2), 3u);
    EXPECT_EQ(gps_area_bits(area, large, BASE, 34 * MiB), every);
    EXPECT_EQ(gps_area_bits(area, small, BASE, 34 * MiB), every);
    EXPECT_EQ(gps_area_bits(area, large, BASE + 63 * half, 34 * MiB - 63 * half), UINT64_C(1)
                                                                                      << 63);
    EXPECT_EQ(gps_area_bits(area, small, BASE + 63 * half, half + 32 * 1024), 1u);
    EXPECT_EQ(gps_area_bits(area, small, BASE + 32 * MiB + 32 * 1024, 2 * MiB - 32 * 1024),
              every << 1);
}

// A copy that ends within a 64th touches it; the next one may begin there, or never come.
TEST_F(Areas, ABlockIsFullWhenCopiesMeetInIt) {
    gps_area *area = add(BASE, 6 * MiB); // 4 and 2
    gps_block *block = &area->blocks[0], *last = &area->blocks[1];
    gps_area_fill(area, block, BASE, 4 * MiB - 1);
    EXPECT_EQ(block->filled, ~UINT64_C(0));
    EXPECT_FALSE(gps_block_is_full(block));
    gps_area_fill(area, block, BASE + 4 * MiB - 1, 1);
    EXPECT_TRUE(gps_block_is_full(block));
    area->size = 5 * MiB + 77; // nothing comes behind it
    gps_area_fill(area, last, BASE + 4 * MiB + 1, MiB + 76);
    EXPECT_EQ(last->filled, ~UINT64_C(0));
    EXPECT_FALSE(gps_block_is_full(last));
    gps_area_fill(area, last, BASE + 3 * MiB, MiB + 1);
    EXPECT_TRUE(gps_block_is_full(last));
}

} // namespace
