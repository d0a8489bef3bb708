/* policy_test.cpp - every question there is, against a table that says the answer in words. */
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" {
#include "driver/driver_ops.h"
#include "findings/policy.h"
}

namespace {

const gps_mode modes[] = {GPS_MODE_SHARE, GPS_MODE_AUDIT, GPS_MODE_OFF};
const gps_on_free on_frees[] = {GPS_FREE_DEFER, GPS_FREE_WAIT, GPS_FREE_REFUSE, GPS_FREE_ALLOW};

constexpr int ANY = -1;

/* A row answers all questions that agree with it; ANY agrees with all. The first row counts. */
struct Row {
    int ask, known, mode, on_free, waited, exiting, linger;
    gps_verdict verdict;
    int code;
    gps_finding finding;
};

const int NOT_OFF = -2;
constexpr gps_finding NONE = static_cast<gps_finding>(GPS_NO_FINDING);

#define NAMED(ask, known, finding)                                                                 \
    { GPS_ASK_##ask, GPS_KNOWN_##known, NOT_OFF, ANY, ANY, ANY, ANY, GPS_FORWARD, 0, GPS_##finding }

const Row table[] = {
    /* off: not a word */
    {ANY, ANY, GPS_MODE_OFF, ANY, ANY, ANY, ANY, GPS_FORWARD, 0, NONE},

    /* a free of what others hold */
    {GPS_ASK_FREE, GPS_KNOWN_CACHED, GPS_MODE_SHARE, GPS_FREE_ALLOW, ANY, ANY, ANY, GPS_FORWARD, 0,
     NONE},
    {GPS_ASK_FREE, GPS_KNOWN_CACHED, GPS_MODE_SHARE, ANY, ANY, false, ANY, GPS_DEFER, 0, NONE},
    {GPS_ASK_FREE, GPS_KNOWN_HELD, GPS_MODE_AUDIT, ANY, false, ANY, ANY, GPS_FORWARD, 0,
     GPS_FREE_WHILE_OPEN},
    {GPS_ASK_FREE, GPS_KNOWN_HELD, GPS_MODE_AUDIT, ANY, true, ANY, ANY, GPS_FORWARD, 0, NONE},
    {GPS_ASK_FREE, GPS_KNOWN_HELD, GPS_MODE_SHARE, ANY, false, true, ANY, GPS_FORWARD, 0,
     GPS_FREE_WHILE_OPEN},
    {GPS_ASK_FREE, GPS_KNOWN_HELD, GPS_MODE_SHARE, ANY, true, true, ANY, GPS_FORWARD, 0, NONE},
    {GPS_ASK_FREE, GPS_KNOWN_HELD, GPS_MODE_SHARE, GPS_FREE_DEFER, false, false, ANY, GPS_DEFER, 0,
     GPS_FREE_WHILE_OPEN},
    {GPS_ASK_FREE, GPS_KNOWN_HELD, GPS_MODE_SHARE, GPS_FREE_DEFER, true, false, ANY, GPS_DEFER, 0,
     NONE},
    {GPS_ASK_FREE, GPS_KNOWN_HELD, GPS_MODE_SHARE, GPS_FREE_WAIT, false, false, ANY, GPS_WAIT, 0,
     GPS_FREE_WHILE_OPEN},
    {GPS_ASK_FREE, GPS_KNOWN_HELD, GPS_MODE_SHARE, GPS_FREE_WAIT, true, false, ANY, GPS_DEFER, 0,
     NONE},
    {GPS_ASK_FREE, GPS_KNOWN_HELD, GPS_MODE_SHARE, GPS_FREE_REFUSE, false, false, ANY, GPS_DENY,
     800, GPS_FREE_WHILE_OPEN},
    {GPS_ASK_FREE, GPS_KNOWN_HELD, GPS_MODE_SHARE, GPS_FREE_REFUSE, true, false, ANY, GPS_DENY, 800,
     NONE},
    {GPS_ASK_FREE, GPS_KNOWN_HELD, GPS_MODE_SHARE, GPS_FREE_ALLOW, false, false, ANY, GPS_FORWARD,
     0, GPS_FREE_WHILE_OPEN},
    {GPS_ASK_FREE, GPS_KNOWN_HELD, GPS_MODE_SHARE, GPS_FREE_ALLOW, true, false, ANY, GPS_FORWARD, 0,
     NONE},

    /* a free of a result, of what is freed, of what nobody holds */
    {GPS_ASK_FREE, GPS_KNOWN_RESULT, NOT_OFF, ANY, ANY, false, ANY, GPS_HAND_OVER, 0, NONE},
    {GPS_ASK_FREE, GPS_KNOWN_RESULT, NOT_OFF, ANY, ANY, true, ANY, GPS_FORWARD, 0, NONE},
    {GPS_ASK_FREE, GPS_KNOWN_DEFERRED, NOT_OFF, ANY, ANY, ANY, ANY, GPS_DENY, 1, GPS_DOUBLE_FREE},
    {GPS_ASK_EXPORT, GPS_KNOWN_DEFERRED, NOT_OFF, ANY, ANY, ANY, ANY, GPS_DENY, 1,
     GPS_EXPORT_NOT_CAPABLE},

    /* opens */
    {GPS_ASK_OPEN, GPS_KNOWN_OPEN_HERE, NOT_OFF, ANY, ANY, ANY, ANY, GPS_FORWARD, 0,
     GPS_DOUBLE_OPEN},
    {GPS_ASK_OPEN, GPS_KNOWN_STALE, GPS_MODE_SHARE, ANY, ANY, ANY, ANY, GPS_DENY, 1,
     GPS_OPEN_STALE},
    {GPS_ASK_OPEN, GPS_KNOWN_STALE, GPS_MODE_AUDIT, ANY, ANY, ANY, ANY, GPS_FORWARD, 0,
     GPS_OPEN_STALE},

    /* events */
    {GPS_ASK_DESTROY, GPS_KNOWN_FREED, GPS_MODE_SHARE, ANY, ANY, ANY, ANY, GPS_DENY, 400,
     GPS_EVENT_DOUBLE_DESTROY},
    {GPS_ASK_DESTROY, GPS_KNOWN_FREED, GPS_MODE_AUDIT, ANY, ANY, ANY, ANY, GPS_FORWARD, 0,
     GPS_EVENT_DOUBLE_DESTROY},

    /* what the driver refused */
    NAMED(FREED, FREED, DOUBLE_FREE),
    NAMED(FREED, INTERIOR, FREE_INTERIOR),
    NAMED(FREED, OPEN_HERE, FREE_IMPORTED),
    NAMED(OPENED, NO_CONTEXT, OPEN_NO_CONTEXT),
    NAMED(OPENED, FLAGS, OPEN_BAD_FLAGS),
    NAMED(OPENED, STALE, OPEN_STALE),
    NAMED(OPENED, DEAD_OWNER, OPEN_DEAD_OWNER),
    NAMED(OPENED, OWN, OPEN_OWN_HANDLE),
    NAMED(OPENED, OPEN_THERE, OPEN_SECOND_CONTEXT),
    NAMED(OPENED, NAMESPACE, OPEN_OTHER_NAMESPACE),
    NAMED(OPENED, UNREACHABLE, OPEN_PEER_DENIED),
    NAMED(OPENED, NOTHING, OPEN_UNKNOWN),
    NAMED(CLOSED, NO_CONTEXT, OPEN_NO_CONTEXT),
    NAMED(CLOSED, FREED, DOUBLE_CLOSE),
    NAMED(CLOSED, INTERIOR, CLOSE_INTERIOR),
    NAMED(CLOSED, OWN, CLOSE_OWN),
    NAMED(CLOSED, NOTHING, CLOSE_UNOPENED),
    NAMED(EXPORTED, NO_CONTEXT, OPEN_NO_CONTEXT),
    NAMED(EXPORTED, NOTHING, EXPORT_NOT_CAPABLE),
    NAMED(EVENT_SHARED, NO_CONTEXT, OPEN_NO_CONTEXT),
    NAMED(EVENT_SHARED, FLAGS, EVENT_NOT_INTERPROCESS),
    NAMED(EVENT_OPENED, NO_CONTEXT, OPEN_NO_CONTEXT),
    NAMED(EVENT_OPENED, OWN, EVENT_OPEN_OWN),
    NAMED(EVENT_OPENED, NAMESPACE, EVENT_OTHER_CONTAINER),
    NAMED(FORKED, NOTHING, FORK_WITH_CONTEXT),

    /* what is worth a word */
    NAMED(NOTED_EXPORT, INTERIOR, EXPORT_INTERIOR),
    NAMED(NOTED_EXPORT, BLOCK, EXPORT_SHARED_BLOCK),
    NAMED(NOTED_DESTROY, HELD, EVENT_DESTROYED_WHILE_OPEN),
    NAMED(NOTED_RESET, OPEN, RESET_WITH_SHARED),
    NAMED(NOTED_RESET, HELD, RESET_WITH_SHARED),
    NAMED(NOTED_RESET, EXPORTED, LEAK_EXPORT),
    NAMED(NOTED_END, OPEN, LEAK_OPEN),
    NAMED(NOTED_END, UNBALANCED, UNBALANCED_OPEN),
    NAMED(NOTED_END, EXPORTED, LEAK_EXPORT),

    /* the end: a result is waited for, others where linger says so, and then reported */
    {GPS_ASK_EXIT, GPS_KNOWN_RESULT, GPS_MODE_SHARE, ANY, false, ANY, ANY, GPS_WAIT, 0, NONE},
    {GPS_ASK_EXIT, GPS_KNOWN_HELD, GPS_MODE_SHARE, ANY, false, ANY, true, GPS_WAIT, 0, NONE},
    {GPS_ASK_EXIT, GPS_KNOWN_HELD, NOT_OFF, ANY, ANY, ANY, ANY, GPS_FORWARD, 0,
     GPS_EXIT_WHILE_OPEN},

    /* whatever else: the driver decides */
    {ANY, ANY, ANY, ANY, ANY, ANY, ANY, GPS_FORWARD, 0, NONE},
};

bool agrees(int column, int value) {
    return column == ANY || column == value;
}

const Row &row_of(const gps_question &q) {
    for (const Row &row : table)
        if (agrees(row.ask, q.ask) && agrees(row.known, q.known) &&
            (agrees(row.mode, q.mode) || (row.mode == NOT_OFF && q.mode != GPS_MODE_OFF)) &&
            agrees(row.on_free, q.on_free) && agrees(row.waited, q.waited) &&
            agrees(row.exiting, q.exiting) && agrees(row.linger, q.linger))
            return row;
    throw std::logic_error("the table ends with a row for all");
}

std::string text(const gps_question &q) {
    return "ask " + std::to_string(q.ask) + " known " + std::to_string(q.known) + " mode " +
           std::to_string(q.mode) + " on_free " + std::to_string(q.on_free) +
           (q.waited ? " waited" : "") + (q.exiting ? " exiting" : "") +
           (q.linger ? " linger" : "");
}

std::vector<gps_question> all_questions() {
    std::vector<gps_question> all;
    for (int ask = 0; ask < GPS_ASK_COUNT; ask++)
        for (int known = 0; known < GPS_KNOWN_COUNT; known++)
            for (gps_mode mode : modes)
                for (gps_on_free on_free : on_frees)
                    for (int flags = 0; flags < 8; flags++) {
                        gps_question q = {};
                        q.ask = static_cast<gps_ask>(ask);
                        q.known = static_cast<gps_known>(known);
                        q.mode = mode;
                        q.on_free = on_free;
                        q.waited = flags & 1;
                        q.exiting = flags & 2;
                        q.linger = flags & 4;
                        all.push_back(q);
                    }
    return all;
}

TEST(Policy, AnswersEveryQuestionAsTheTableSays) {
    size_t count = 0;
    for (const gps_question &q : all_questions()) {
        const gps_answer answer = gps_policy(&q);
        const Row &row = row_of(q);
        EXPECT_EQ(answer.verdict, row.verdict) << text(q);
        EXPECT_EQ(static_cast<int>(answer.finding), static_cast<int>(row.finding)) << text(q);
        EXPECT_EQ(answer.code, row.code) << text(q);
        count++;
    }
    EXPECT_EQ(count, 1u * GPS_ASK_COUNT * GPS_KNOWN_COUNT * 3 * 4 * 8);
}

TEST(Policy, EveryRowIsReached) {
    for (const Row &row : table) {
        bool reached = false;
        for (const gps_question &q : all_questions())
            reached = reached || &row_of(q) == &row;
        EXPECT_TRUE(reached) << &row - table;
    }
}

TEST(Policy, AuditNeverChangesWhatTheProgramGetsButForAResultAndADeferred) {
    for (gps_question q : all_questions()) {
        if (q.mode != GPS_MODE_AUDIT || q.known == GPS_KNOWN_RESULT ||
            q.known == GPS_KNOWN_DEFERRED) /* neither comes to be in audit mode */
            continue;
        EXPECT_EQ(gps_policy(&q).verdict, GPS_FORWARD) << text(q);
    }
}

TEST(Policy, NoWaitFollowsAWait) {
    for (gps_question q : all_questions()) {
        EXPECT_FALSE(q.waited && gps_policy(&q).verdict == GPS_WAIT) << text(q);
    }
}

TEST(Policy, NamesEveryFindingOfAProgram) {
    std::set<int> named;
    for (gps_question q : all_questions())
        named.insert(gps_policy(&q).finding);
    for (int finding = 0; finding < GPS_SHARE_MISMATCH;
         finding++) // the rest is about gpushare itself
        EXPECT_TRUE(named.count(finding)) << finding;
}

TEST(Policy, ADenialHasACode) {
    for (gps_question q : all_questions()) {
        const gps_answer answer = gps_policy(&q);
        EXPECT_EQ(answer.verdict == GPS_DENY, answer.code != GPS_OK) << text(q);
    }
}

struct Known : testing::Test {
    gps_rule result = {};
    gps_export region = {};
    Known() {
        result.ready = GPS_READY_FREE;
    }
    gps_known in(gps_export_state state) {
        region.state = state;
        return gps_policy_known(&region);
    }
};

TEST_F(Known, IsWhoUsesTheRegion) {
    for (gps_export_state state : {GPS_EXPORT_CLOSING, GPS_EXPORT_DEFERRED, GPS_EXPORT_LEAVING}) {
        region.users = {};
        EXPECT_EQ(in(state), GPS_KNOWN_EXPORTED);
        region.users.cached = true;
        EXPECT_EQ(in(state), GPS_KNOWN_CACHED);
        region.users.held = true;
        EXPECT_EQ(in(state), GPS_KNOWN_HELD);
    }
}

TEST_F(Known, IsAResultUntilAnImporterHasTakenIt) {
    region.rule = &result;
    region.users.held = true;
    EXPECT_EQ(in(GPS_EXPORT_CLOSING), GPS_KNOWN_RESULT);
    for (gps_export_state state : {GPS_EXPORT_RESULT, GPS_EXPORT_LEFT_RESULT}) {
        region.users.taken = false;
        EXPECT_EQ(in(state), GPS_KNOWN_RESULT);
        region.users.taken = true;
        EXPECT_EQ(in(state), GPS_KNOWN_HELD);
    }
}

TEST_F(Known, IsNothingWhereTheKeeperHasTheMemory) {
    region.vmm = region.users.held = true;
    region.record.keep = GPS_KEEP_USERS;
    EXPECT_EQ(in(GPS_EXPORT_LEAVING), GPS_KNOWN_NOTHING);
    region.record.keep = GPS_KEEP_OWNER;
    EXPECT_EQ(in(GPS_EXPORT_LEAVING), GPS_KNOWN_HELD);
}

} // namespace
