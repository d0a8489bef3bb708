// coverage_test.cpp - ranges that are written in any order become what is covered.
#include <gtest/gtest.h>

#include <random>
#include <vector>

extern "C" {
#include "upload/coverage.h"
}

namespace {

TEST(Coverage, NothingIsCoveredAtFirst) {
    const gps_coverage coverage = {};
    EXPECT_EQ(gps_coverage_prefix(&coverage), 0u);
}

TEST(Coverage, APrefixGrowsAsGapsClose) {
    gps_coverage coverage = {};
    EXPECT_TRUE(gps_coverage_add(&coverage, 20, 30));
    EXPECT_EQ(gps_coverage_prefix(&coverage), 0u);
    EXPECT_TRUE(gps_coverage_add(&coverage, 0, 10));
    EXPECT_EQ(gps_coverage_prefix(&coverage), 10u);
    EXPECT_TRUE(gps_coverage_add(&coverage, 10, 20));
    EXPECT_EQ(gps_coverage_prefix(&coverage), 30u);
    EXPECT_EQ(coverage.count, 1u);
}

TEST(Coverage, NothingAddsNothing) {
    gps_coverage coverage = {};
    EXPECT_TRUE(gps_coverage_add(&coverage, 5, 5));
    EXPECT_EQ(coverage.count, 0u);
}

TEST(Coverage, OneRangeSwallowsManyOthers) {
    gps_coverage coverage = {};
    for (uint64_t i = 0; i < 20; i++)
        EXPECT_TRUE(gps_coverage_add(&coverage, 10 * i + 3, 10 * i + 5));
    EXPECT_EQ(coverage.count, 20u);
    EXPECT_TRUE(gps_coverage_add(&coverage, 14, 196));
    EXPECT_EQ(coverage.count, 2u);
    EXPECT_EQ(coverage.ranges[1].begin, 13u);
    EXPECT_EQ(coverage.ranges[1].end, 196u);
}

TEST(Coverage, SaysWhenThereIsNoPlaceAndStaysAsItWas) {
    gps_coverage coverage = {};
    for (uint64_t i = 0; i < GPS_COVERAGE_RANGES; i++)
        EXPECT_TRUE(gps_coverage_add(&coverage, 10 * i, 10 * i + 5));
    EXPECT_FALSE(gps_coverage_add(&coverage, 10000, 10001));
    EXPECT_EQ(coverage.count, GPS_COVERAGE_RANGES);
    EXPECT_TRUE(gps_coverage_add(&coverage, 5, 10)) << "what closes a gap needs no place";
    EXPECT_EQ(gps_coverage_prefix(&coverage), 15u);
}

TEST(Coverage, IsAsABitOfEachByte) {
    std::mt19937 random(7);
    for (int round = 0; round < 200; round++) {
        gps_coverage coverage = {};
        std::vector<bool> bytes(300);
        for (int step = 0; step < 60; step++) {
            const uint64_t begin = random() % 300, end = begin + random() % (301 - begin);
            if (!gps_coverage_add(&coverage, begin, end))
                break;
            for (uint64_t i = begin; i < end; i++)
                bytes[i] = true;
            std::vector<bool> seen(300);
            for (unsigned i = 0; i < coverage.count; i++) {
                ASSERT_LT(coverage.ranges[i].begin, coverage.ranges[i].end);
                if (i) {
                    ASSERT_GT(coverage.ranges[i].begin, coverage.ranges[i - 1].end);
                }
                for (uint64_t b = coverage.ranges[i].begin; b < coverage.ranges[i].end; b++)
                    seen[b] = true;
            }
            ASSERT_EQ(seen, bytes);
        }
    }
}

} // namespace
