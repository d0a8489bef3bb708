// turn_test.cpp - where a frame ends, by what a program does.

extern "C" {
#include "frames/turn.h"
}

namespace {

// A letter touches (a capital one: in a second thread), "." waits. What comes out has "|" where a
// frame is told.
std::string written(const std::string &program, unsigned fixed = 0) {
    gps_turn turn = {};
    turn.fixed = fixed;
    std::string out;
    for (char c : program) {
        const bool second = c >= 'A' && c <= 'Z';
        if (c != '.' &&
            gps_turn_touch(&turn, static_cast<uint64_t>(second ? c + 32 : c), second ? 2 : 1))
            out += "|";
        out += c;
        if (c == '.' && gps_turn_wait(&turn))
            out += "|";
    }
    return out + (gps_turn_is_whole(&turn) ? "|" : "");
}

std::string times(unsigned count, const std::string &what) {
    std::string out;
    while (count--)
        out += what;
    return out;
}

unsigned waits(const std::string &program, unsigned fixed = 0) {
    gps_turn turn = {};
    turn.fixed = fixed;
    for (char c : program)
        if (c == '.')
            gps_turn_wait(&turn);
        else
            gps_turn_touch(&turn, static_cast<uint64_t>(c), 1);
    return gps_turn_number_of_waits(&turn);
}

TEST(Turn, TheNumberOfWaitsIsThatOfTheLastFrames) {
    EXPECT_EQ(waits(times(8, "a.b.")), 0u);
    EXPECT_EQ(waits(times(9, "a.b.")), 2u);
    EXPECT_EQ(waits(times(9, "ab")), 0u) << "it never waits";
    EXPECT_EQ(waits(times(9, "a.b.") + "a.b.c." + "a."), 0u) << "they differ";
    EXPECT_EQ(waits("", 3), 3u);
}

TEST(Turn, TheFirstTouchComesAgain) {
    EXPECT_EQ(written("abcd.abcd.ab"), "abcd.|abcd.|ab|");
}

TEST(Turn, AWaitCountsOnceAfterATouch) {
    EXPECT_EQ(written("ab....ab.ab"), "ab....|ab.|ab|");
}

TEST(Turn, AfterEightAlikeTheLastWaitEndsIt) {
    EXPECT_EQ(written(times(11, "ab.")), times(8, "ab.|") + "ab.|ab.|ab.|");
    const std::string four = "a.b.c.d.";
    EXPECT_EQ(written(times(12, four)), times(8, four + "|") + times(4, "a.b.c.d.|"));
}

// Such a frame is told at once although it is not whole, which is counted, and not again.
TEST(Turn, AFrameWithMoreWaitsThanTheOnesBefore) {
    gps_turn turn = {};
    for (int i = 0; i < 9; i++) {
        gps_turn_touch(&turn, 'a', 1);
        gps_turn_wait(&turn);
    }
    EXPECT_EQ(turn.odd, 0u);
    EXPECT_FALSE(gps_turn_touch(&turn, 'b', 1)); // it goes on
    EXPECT_EQ(turn.odd, 1u);
    EXPECT_FALSE(gps_turn_wait(&turn));
    EXPECT_TRUE(gps_turn_touch(&turn, 'a', 1));
}

TEST(Turn, AfterItTwiceAsManyMustAgree) {
    const std::string broken = times(9, "a.") + "b." + "a.";
    EXPECT_EQ(waits(broken + times(15, "a.")), 0u);
    EXPECT_EQ(waits(broken + times(16, "a.")), 1u);
    const std::string again = broken + times(16, "a.") + "b." + "a.";
    EXPECT_EQ(waits(again + times(31, "a.")), 0u);
    EXPECT_EQ(waits(again + times(32, "a.")), 1u);
}

TEST(Turn, WhoNeverWaitsHasNothingButTheFirstTouch) {
    EXPECT_EQ(written("abab"), "ab|ab|");
}

TEST(Turn, WhatIsTouchedOnceBeforeTheLoopDoesNotCount) {
    EXPECT_EQ(written("x" + times(20, "a.")), "x" + times(16, "a.") + "|a.|a.|a.|a.|");
}

// A step that is made again and again is no frame: what begins it is.
TEST(Turn, StepsBehindTheFirstTouch) {
    EXPECT_EQ(written("ab.ab.ab."), "ab.|ab.|ab.|");
    EXPECT_EQ(written("a.bb.bb.a.bb.bb.a."), "a.bb.bb.|a.bb.bb.|a.|");
}

TEST(Turn, AFixedNumberOfWaits) {
    EXPECT_EQ(written("a.a.a.a.a.", 2), "a.a.|a.a.|a.");
    EXPECT_EQ(written("a.b.", 3), "a.b.");
}

TEST(Turn, OfTwoThreadsEitherBeginsAFrame) {
    EXPECT_EQ(written("abCD.Ca.DbaCb."), "abCD.|Ca.Db|aCb.|");
    EXPECT_EQ(written("abCD.Cab.D.aCbD."), "abCD.|Cab.D.|aCbD.|");
}

// The other thread may still be on its way.
TEST(Turn, OfTwoThreadsAWaitEndsAFrameThatHasAsManyTouches) {
    const std::string before = times(9, "abCD.");
    const std::string told = written(before + "ab.CD.abCD.");
    EXPECT_EQ(told.substr(told.size() - 14), "|ab.CD.|abCD.|");
}

std::string looked(const std::string &program) {
    gps_turn turn = {};
    std::string out;
    for (char c : program) {
        if (c == '.')
            gps_turn_looked(&turn);
        else if (gps_turn_look(&turn, static_cast<uint64_t>(c)))
            out += "|";
        out += c;
    }
    return out;
}

TEST(Turn, AReaderLooksAtAnotherFrameWhenATouchComesAgain) {
    EXPECT_EQ(looked("a.a.a."), "|a.|a.|a.");
    EXPECT_EQ(looked("a.b.c.a.b.c."), "|a.b.c.|a.b.c.");
    EXPECT_EQ(looked("abab.ab"), "|ab|ab.|ab"); // before its first wait it may never wait
}

TEST(Turn, AReaderOfEverDifferentPlacesGetsAnotherFrame) {
    EXPECT_EQ(looked("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q."), "|a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.|q.");
}

} // namespace
