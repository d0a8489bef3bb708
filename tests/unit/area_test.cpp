// area_test.cpp - allocations in blocks: how they are cut, found, and what of them is filled.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include "driver/driver_ops.h"
#include "merge/block.h"
#include "merge/layout.h"
#include "util/clock.h"
#pragma GCC diagnostic pop

// The driver's part of it is not asked for here.
static int entered;
static int enter(uint64_t) {
    entered++;
    return GPS_OK;
}
static void leave() {
}
static uint64_t room = UINT64_C(100) << 20;
static int room_of(uint64_t *bytes) {
    *bytes = room;
    return GPS_OK;
}
static struct gps_operations ops() {
    struct gps_operations table = {};
    table.enter = enter;
    table.leave = leave;
    table.room = room_of;
    return table;
}
static const struct gps_operations stubs = ops();
static const bool stubbed = (gps_operations = &stubs) != nullptr;
int gps_block_copy(const struct gps_area *, const struct gps_block *, uint64_t *) {
    return GPS_OK;
}
static int makes = 1000; // so many blocks more can be made
int gps_block_make(const struct gps_area *, struct gps_block *block) {
    if (makes == 0)
        return GPS_OUT_OF_MEMORY;
    makes--;
    block->made = 1;
    block->made_size = block->size;
    return GPS_OK;
}
void gps_block_unmake(struct gps_block *block) {
    makes += block->made != 0;
    block->made = 0;
}
bool gps_block_has_room(uint64_t bytes) {
    return room >= bytes;
}
int gps_block_exchange(const struct gps_area *, const struct gps_block *, unsigned,
                       struct gps_block *, unsigned) {
    return GPS_OK;
}
}

namespace {

constexpr uint64_t MiB = UINT64_C(1) << 20;

std::vector<gps_block> blocks_of(uint64_t extent) {
    std::vector<gps_block> blocks(gps_area_cut(0, extent, nullptr));
    EXPECT_EQ(gps_area_cut(0, extent, blocks.data()), blocks.size());
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
        gps_area *area = gps_area_new(extent);
        area->pointer = pointer;
        area->size = extent - 1000;
        area->rule = &rule;
        area->lazy = true;
        EXPECT_TRUE(gps_area_add(area));
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

std::vector<uint64_t> now(const gps_area *area) {
    std::vector<uint64_t> sizes;
    uint64_t at = 0;
    for (unsigned i = 0; i < area->count; i++) {
        EXPECT_EQ(area->blocks[i].at, at);
        at += area->blocks[i].size;
        sizes.push_back(area->blocks[i].size / MiB);
    }
    EXPECT_EQ(at, area->extent);
    return sizes;
}

std::vector<uint64_t> fitted(gps_area *area, uint64_t at, uint64_t size) {
    gps_layout_note(area, area->pointer + at, size);
    return now(area);
}

TEST_F(Areas, AreCutWhereCopiesBeginAndEnd) {
    using Sizes = std::vector<uint64_t>;
    gps_area *area = add(BASE, 20 * MiB); // 16, 4
    EXPECT_EQ(fitted(area, 0, 20 * MiB), (Sizes{16, 4})) << "as it was";
    EXPECT_EQ(fitted(area, 0, 4 * MiB), (Sizes{4, 12, 4})) << "what comes behind is not known";
    EXPECT_EQ(fitted(area, 4 * MiB, 16 * MiB), (Sizes{4, 16}));
    EXPECT_EQ(fitted(area, 6 * MiB - 512, 8 * MiB + 512), (Sizes{4, 2, 8, 6}));
    EXPECT_EQ(fitted(area, 4 * MiB, 16 * MiB), (Sizes{4, 16})) << "another one at its place";
    area->blocks[0].state = GPS_BLOCK_SPECULATIVE;
    EXPECT_EQ(fitted(area, 2 * MiB, 8 * MiB), (Sizes{4, 6, 10})) << "what has memory stays";
    EXPECT_EQ(area->blocks[0].state, GPS_BLOCK_SPECULATIVE);
    EXPECT_EQ(area->blocks[1].state, GPS_BLOCK_UNBACKED);
}

TEST_F(Areas, ACopyUpToTheEndFillsTheLastBlock) {
    using Sizes = std::vector<uint64_t>;
    gps_area *area = add(BASE, 16 * MiB); // and 1000 bytes less
    EXPECT_EQ(fitted(area, 0, area->size), Sizes{16});
    EXPECT_EQ(fitted(area, 4 * MiB, area->size - 4 * MiB), (Sizes{4, 8, 4}));
    EXPECT_EQ(fitted(area, 8 * MiB, area->size - 8 * MiB), (Sizes{4, 4, 8}));
    EXPECT_EQ(fitted(area, 0, area->size), Sizes{16});
}

TEST_F(Areas, OfAnySizeAreCutOnlyWhereATensorLies) {
    using Sizes = std::vector<uint64_t>;
    gps_area *large = add(BASE, 130 * MiB), *small = add(BASE + 200 * MiB, 64 * MiB);
    EXPECT_EQ(fitted(large, 42 * MiB, 46 * MiB), (Sizes{32, 10, 32, 8, 4, 2, 8, 32, 2}));
    for (uint64_t at = 0; at < 64; at += 4)
        fitted(small, at * MiB, 4 * MiB);
    EXPECT_EQ(now(small), std::vector<uint64_t>(16, 4));
}

// What lies between tensors gives no memory to those that are still to come.
TEST_F(Areas, ASmallCopyIsSetApartWhereTensorsLie) {
    using Sizes = std::vector<uint64_t>;
    gps_area *area = add(BASE, 32 * MiB);
    EXPECT_EQ(fitted(area, 9 * MiB, MiB), (Sizes{32})) << "it may be one of many pieces";
    EXPECT_EQ(fitted(area, 0, 4 * MiB), (Sizes{4, 28}));
    EXPECT_EQ(fitted(area, 9 * MiB, 2 * MiB), (Sizes{4, 4, 4, 20}));
    area->blocks[3].state = GPS_BLOCK_PRIVATE;
    EXPECT_EQ(fitted(area, 15 * MiB, MiB), (Sizes{4, 4, 4, 20}));
}

TEST_F(Areas, WithMemoryAreNotCutAtOnce) {
    gps_area *area = add(BASE, 40 * MiB);
    area->lazy = false;
    EXPECT_EQ(fitted(area, 4 * MiB, 8 * MiB), (std::vector<uint64_t>{32, 8}));
}

TEST_F(Areas, ABlockIsFoundByWhereItBegins) {
    gps_area *area = add(BASE, 20 * MiB), *found;
    EXPECT_EQ(gps_area_block(BASE + 16 * MiB, area->serial, &found), &area->blocks[1]);
    EXPECT_EQ(found, area);
    EXPECT_EQ(gps_area_block(BASE + 4 * MiB, area->serial, &found), nullptr);
    fitted(area, 0, 4 * MiB);
    EXPECT_EQ(gps_area_block(BASE + 4 * MiB, area->serial, &found), &area->blocks[1]);
    EXPECT_EQ(gps_area_block(BASE, area->serial + 1, &found), nullptr);
}

// Frozen blocks are held until all that are cut anew with them are frozen, too.
TEST_F(Areas, AStretchIsFoundOnceAllOfItIsFrozen) {
    gps_area *area = add(BASE, 20 * MiB);
    for (unsigned i = 0; i < area->count; i++)
        area->blocks[i].state = GPS_BLOCK_PRIVATE;
    EXPECT_EQ(fitted(area, 4 * MiB, 16 * MiB), (std::vector<uint64_t>{16, 4}));
    gps_relayout relayout{};
    EXPECT_FALSE(gps_layout_next(0, &relayout));
    area->blocks[0].state = GPS_BLOCK_FROZEN;
    area->blocks[0].swapped = gps_clock_monotonic();
    EXPECT_TRUE(gps_layout_holds(area, &area->blocks[0]));
    EXPECT_FALSE(gps_layout_next(0, &relayout));
    area->blocks[1].state = GPS_BLOCK_FROZEN;
    EXPECT_FALSE(gps_layout_next(area->serial + 1, &relayout)) << "of another area";
    EXPECT_TRUE(gps_layout_next(0, &relayout));
    EXPECT_EQ(relayout.first, 0u);
    EXPECT_EQ(relayout.end, 2u);
    EXPECT_EQ(relayout.count, 2u);
    EXPECT_EQ(relayout.wanted[0].size, 4 * MiB);
    EXPECT_EQ(relayout.wanted[1].size, 16 * MiB);
    EXPECT_FALSE(gps_layout_next(0, &relayout)) << "once a turn";
}

// What will never be frozen is not waited for.
TEST_F(Areas, AStretchEndsBesideABlockThatIsMerged) {
    gps_area *area = add(BASE, 20 * MiB); // 16, 4; wanted: 4, 16
    area->blocks[0].state = GPS_BLOCK_FROZEN;
    area->blocks[0].swapped = gps_clock_monotonic();
    area->blocks[1].state = GPS_BLOCK_SHARED;
    fitted(area, 4 * MiB, 16 * MiB);
    gps_relayout relayout{};
    EXPECT_TRUE(gps_layout_holds(area, &area->blocks[0]));
    ASSERT_TRUE(gps_layout_next(0, &relayout));
    ASSERT_TRUE(gps_layout_copy(&relayout));
    gps_layout_exchange(&relayout);
    ASSERT_EQ(now(area), (std::vector<uint64_t>{4, 8, 4, 4}));
    for (unsigned i = 0; i < 3; i++)
        area->blocks[i].state = GPS_BLOCK_FROZEN;
    relayout = {};
    EXPECT_FALSE(gps_layout_next(0, &relayout));
    EXPECT_FALSE(gps_layout_holds(area, &area->blocks[1]));
}

// A long stretch is cut anew in parts, each with memory for itself alone.
TEST_F(Areas, AStretchIsCutInParts) {
    gps_area *area = add(BASE, 640 * MiB);
    area->lazy = false;
    room = UINT64_C(10) << 30;
    for (unsigned i = 0; i < area->count; i++) {
        area->blocks[i].state = GPS_BLOCK_FROZEN;
        area->blocks[i].swapped = 1;
    }
    std::vector<uint64_t> wanted{2};
    for (uint64_t at = 2; at + 22 <= 640; at += 22) { // nowhere as they are
        fitted(area, at * MiB, 22 * MiB);
        wanted.insert(wanted.end(), {16, 4, 2});
    }
    gps_relayout relayout{};
    uint64_t most = 0;
    unsigned parts = 0;
    for (; gps_layout_next(0, &relayout); parts++) {
        const uint64_t begin = area->blocks[relayout.first].at;
        const gps_block *last = &area->blocks[relayout.end - 1];
        most = std::max(most, last->at + last->size - begin);
        ASSERT_TRUE(gps_layout_copy(&relayout));
        gps_layout_exchange(&relayout);
        for (unsigned i = 0; i < area->count; i++)
            area->blocks[i].state = GPS_BLOCK_FROZEN;
    }
    EXPECT_EQ(now(area), wanted);
    EXPECT_LE(most, GPS_MERGE_WINDOW);
    EXPECT_GT(parts, 2u);
    room = 100 * MiB;
}

struct Relayouts : Areas {
    gps_area *area = add(BASE, 20 * MiB); // 16, 4; wanted: 4, 16
    gps_relayout relayout{};

    void freeze(uint64_t first, uint64_t second) {
        for (unsigned i = 0; i < 2; i++)
            area->blocks[i].state = GPS_BLOCK_FROZEN;
        area->blocks[0].filled = first;
        area->blocks[1].filled = second;
        fitted(area, 4 * MiB, 16 * MiB);
        ASSERT_TRUE(gps_layout_next(0, &relayout));
    }
    void exchange() {
        ASSERT_TRUE(gps_layout_copy(&relayout));
        gps_layout_exchange(&relayout);
        ASSERT_EQ(now(area), (std::vector<uint64_t>{4, 16}));
    }
};

// An error 700 with one that is not full is put down to it (exclusion.h).
TEST_F(Relayouts, KeepWhatOfThemIsFilled) {
    const uint64_t every = ~UINT64_C(0);
    freeze(every << 32, every); // all but the first 8 MiB
    exchange();
    EXPECT_EQ(area->blocks[0].filled, 0u);
    EXPECT_EQ(area->blocks[1].filled, every << 16);
}

TEST_F(Relayouts, AreFullWhereAllOfThemIs) {
    const uint64_t every = ~UINT64_C(0);
    freeze(every, every);
    exchange();
    EXPECT_EQ(area->blocks[0].filled, every);
    EXPECT_EQ(area->blocks[1].filled, every);
}

// To enter a context that is gone ends the process.
TEST_F(Relayouts, OfAnAreaThatIsGoneAreNotTouched) {
    freeze(1, 1);
    remove(0);
    entered = 0;
    EXPECT_FALSE(gps_layout_copy(&relayout));
    EXPECT_EQ(entered, 0);
}

// They do not take the last memory that there is.
TEST_F(Relayouts, AreNotCopiedWithoutRoom) {
    freeze(1, 1);
    room = 38 * MiB;
    EXPECT_FALSE(gps_layout_copy(&relayout));
    room = 100 * MiB;
    EXPECT_TRUE(gps_layout_copy(&relayout));
}

// What the allocation has never becomes less, and the new blocks have all of it.
TEST_F(Areas, AreCutWithTheirMemory) {
    using Sizes = std::vector<uint64_t>;
    gps_area *area = add(BASE, 20 * MiB); // 16, 4
    makes = 2;
    for (unsigned i = 0; i < area->count; i++)
        gps_block_make(area, &area->blocks[i]);
    makes = 2;
    EXPECT_EQ(fitted(area, 4 * MiB, 16 * MiB), (Sizes{4, 16}));
    EXPECT_EQ(makes, 2);
    for (unsigned i = 0; i < area->count; i++)
        EXPECT_EQ(area->blocks[i].made, 1u);
    makes = 0;
    EXPECT_EQ(fitted(area, 0, 6 * MiB), (Sizes{4, 16})) << "there is no room for another";
    EXPECT_EQ(makes, 0);
    EXPECT_EQ(area->blocks[1].made, 1u);
    makes = 1000;
}

TEST_F(Areas, AreMadeOnceWhereCopiesComeOneBehindTheOther) {
    gps_area *area = add(BASE, 64 * MiB);
    for (unsigned i = 0; i < area->count; i++)
        gps_block_make(area, &area->blocks[i]);
    for (uint64_t at = 0; at < 16 * MiB; at += 4 * MiB) {
        makes = 1;
        fitted(area, at, 4 * MiB);
        EXPECT_EQ(makes, 0) << at / MiB << ": its own; the rest has what was there";
    }
    makes = 3;
    fitted(area, 32 * MiB, 4 * MiB);
    fitted(area, 36 * MiB, 16 * MiB);
    EXPECT_EQ(makes, 1) << "the rest was made anew: too much would be held";
    makes = 1000;
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
