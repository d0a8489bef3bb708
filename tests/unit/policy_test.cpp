/* policy_test.cpp - what holds for every question there is. */
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

extern "C" {
#include "driver/driver_ops.h"
#include "findings/policy.h"
#include "log/log.h"
}

static std::ostream &operator<<(std::ostream &out, const gps_question &q) {
    return out << "ask " << q.ask << " known " << q.known << " mode " << q.mode << " on_free "
               << q.on_free << (q.waited ? " waited" : "") << (q.exiting ? " exiting" : "")
               << (q.linger ? " linger" : "");
}

namespace {

const gps_mode modes[] = {GPS_MODE_SHARE, GPS_MODE_AUDIT, GPS_MODE_OFF};
const gps_on_free on_frees[] = {GPS_FREE_DEFER, GPS_FREE_WAIT, GPS_FREE_REFUSE, GPS_FREE_ALLOW};

std::vector<gps_question> all_questions() {
    std::vector<gps_question> all;
    for (int ask = 0; ask < GPS_ASK_COUNT; ask++)
        for (int known = 0; known < GPS_KNOWN_COUNT; known++)
            for (gps_mode mode : modes)
                for (gps_on_free on_free : on_frees)
                    for (int flags = 0; flags < 8; flags++)
                        all.push_back({static_cast<gps_ask>(ask), static_cast<gps_known>(known),
                                       mode, on_free, (flags & 1) != 0, (flags & 2) != 0,
                                       (flags & 4) != 0});
    return all;
}

const std::vector<gps_question> &questions() {
    static const std::vector<gps_question> all = all_questions();
    return all;
}

/* The questions of one mode. */
std::vector<gps_question> questions(gps_mode mode) {
    std::vector<gps_question> some;
    for (const gps_question &q : questions())
        if (q.mode == mode)
            some.push_back(q);
    return some;
}

bool says(const gps_answer &answer) {
    return static_cast<int>(answer.finding) != GPS_NO_FINDING;
}

bool is_about_the_program(int finding) { /* the rest is about gpushare itself */
    return finding < GPS_SHARE_MISMATCH;
}

/* The call has not been made yet: only then can anything be done about it. */
bool is_before_the_call(gps_ask ask) {
    return ask <= GPS_ASK_EXIT;
}

gps_question with(gps_question q, gps_mode mode) {
    q.mode = mode;
    return q;
}

gps_question after_the_wait(gps_question q) {
    q.waited = true;
    return q;
}

bool operator==(const gps_answer &a, const gps_answer &b) {
    return a.verdict == b.verdict && a.code == b.code && a.finding == b.finding;
}

/* --- verdicts --- */

TEST(Policy, OffNeverActsAndNeverSpeaks) {
    for (const gps_question &q : questions(GPS_MODE_OFF)) {
        EXPECT_EQ(gps_policy(&q).verdict, GPS_FORWARD) << q;
        EXPECT_FALSE(says(gps_policy(&q))) << q;
    }
}

TEST(Policy, AuditNeverActsButOnWhatOnlyShareBringsAbout) {
    for (const gps_question &q : questions(GPS_MODE_AUDIT)) {
        if (q.known != GPS_KNOWN_RESULT && q.known != GPS_KNOWN_DEFERRED) {
            EXPECT_EQ(gps_policy(&q).verdict, GPS_FORWARD) << q;
        }
    }
}

TEST(Policy, WhatHasHappenedIsOnlyNamed) {
    for (const gps_question &q : questions()) {
        if (!is_before_the_call(q.ask)) {
            EXPECT_EQ(gps_policy(&q).verdict, GPS_FORWARD) << q;
        }
    }
}

TEST(Policy, EachVerdictIsForTheCallThatItSuits) {
    for (const gps_question &q : questions()) {
        switch (gps_policy(&q).verdict) {
        case GPS_HAND_OVER:
            EXPECT_TRUE(q.ask == GPS_ASK_FREE && q.known == GPS_KNOWN_RESULT) << q;
            break;
        case GPS_DEFER:
            EXPECT_EQ(q.ask, GPS_ASK_FREE) << q;
            break;
        case GPS_WAIT:
            EXPECT_TRUE(q.ask == GPS_ASK_FREE || q.ask == GPS_ASK_EXIT) << q;
            break;
        case GPS_DENY:
            EXPECT_NE(q.ask, GPS_ASK_EXIT) << q;
            break;
        case GPS_FORWARD:
            break;
        }
    }
}

TEST(Policy, OnlyADenialHasACodeWhichIsTheDriversOwnForIt) {
    for (const gps_question &q : questions()) {
        const gps_answer answer = gps_policy(&q);
        const int expected = answer.verdict != GPS_DENY  ? GPS_OK
                             : q.ask == GPS_ASK_DESTROY  ? GPS_INVALID_HANDLE
                             : q.known == GPS_KNOWN_HELD ? GPS_NOT_PERMITTED
                                                         : GPS_INVALID_VALUE;
        EXPECT_EQ(answer.code, expected) << q;
    }
}

TEST(Policy, ThereIsAReasonForADenial) {
    for (const gps_question &q : questions()) {
        if (gps_policy(&q).verdict == GPS_DENY && !q.waited) {
            EXPECT_TRUE(says(gps_policy(&q))) << q;
            EXPECT_TRUE(q.known == GPS_KNOWN_HELD || q.known == GPS_KNOWN_DEFERRED ||
                        q.known == GPS_KNOWN_STALE || q.known == GPS_KNOWN_FREED ||
                        q.known == GPS_KNOWN_INTERIOR)
                << q;
        }
    }
}

TEST(Policy, NoWaitFollowsAWait) {
    for (const gps_question &q : questions()) {
        EXPECT_FALSE(q.waited && gps_policy(&q).verdict == GPS_WAIT) << q;
    }
}

TEST(Policy, NothingIsPutOffWhereTheProcessEnds) {
    for (const gps_question &q : questions()) {
        const gps_verdict verdict = gps_policy(&q).verdict;
        if (q.ask == GPS_ASK_FREE && q.exiting) {
            EXPECT_TRUE(verdict == GPS_FORWARD || verdict == GPS_DENY) << q;
            EXPECT_TRUE(verdict == GPS_FORWARD || q.known == GPS_KNOWN_DEFERRED ||
                        q.known == GPS_KNOWN_INTERIOR)
                << q;
        }
    }
}

/* --- what sharing is for --- */

bool others_have_it_mapped(gps_known known) {
    return known == GPS_KNOWN_HELD || known == GPS_KNOWN_CACHED;
}

/* The importers' programs have closed it, so its maker does nothing wrong, and waits for nothing.
 */
TEST(Policy, WhatOthersOnlyCacheIsNobodysFault) {
    for (const gps_question &q : questions()) {
        const gps_answer answer = gps_policy(&q);
        if (q.known == GPS_KNOWN_CACHED) {
            EXPECT_FALSE(says(answer)) << q;
            EXPECT_TRUE(answer.verdict == GPS_FORWARD || answer.verdict == GPS_DEFER) << q;
        }
    }
}

TEST(Policy, AResultIsHandedOverAtItsFreeAndWaitedForAtTheEnd) {
    for (const gps_question &q : questions()) {
        const gps_answer answer = gps_policy(&q);
        if (q.known != GPS_KNOWN_RESULT || q.mode == GPS_MODE_OFF)
            continue;
        EXPECT_FALSE(says(answer)) << q;
        if (q.ask == GPS_ASK_FREE && !q.exiting) {
            EXPECT_EQ(answer.verdict, GPS_HAND_OVER) << q;
        }
        if (q.ask == GPS_ASK_EXIT && q.mode == GPS_MODE_SHARE && !q.waited) {
            EXPECT_EQ(answer.verdict, GPS_WAIT) << q;
        }
    }
}

/* The driver would open another buffer, crash, or do to memory what is done already for the
 * program. */
TEST(Policy, ShareKeepsWhatIsGoneFromTheDriver) {
    for (const gps_question &q : questions(GPS_MODE_SHARE)) {
        const bool gone =
            (q.known == GPS_KNOWN_STALE && q.ask == GPS_ASK_OPEN) ||
            (q.known == GPS_KNOWN_FREED && q.ask == GPS_ASK_DESTROY) ||
            (q.known == GPS_KNOWN_DEFERRED && (q.ask == GPS_ASK_FREE || q.ask == GPS_ASK_EXPORT));
        if (gone) {
            EXPECT_EQ(gps_policy(&q).verdict, GPS_DENY) << q;
        }
    }
}

/* Where the driver is asked about it at all, it frees the whole. */
TEST(Policy, ShareFreesNothingByAPointerInside) {
    for (const gps_question &q : questions(GPS_MODE_SHARE)) {
        if (q.ask == GPS_ASK_FREE && q.known == GPS_KNOWN_INTERIOR) {
            EXPECT_EQ(gps_policy(&q).verdict, GPS_DENY) << q;
            EXPECT_EQ(gps_policy(&q).finding, GPS_FREE_INTERIOR) << q;
        }
    }
}

/* Wherever one comes to be, the program's free has succeeded before. */
TEST(Policy, ADeferredFreeIsOneInEveryMode) {
    for (const gps_question &q : questions(GPS_MODE_AUDIT)) {
        if (q.known == GPS_KNOWN_DEFERRED && is_before_the_call(q.ask)) {
            const gps_question share = with(q, GPS_MODE_SHARE);
            EXPECT_TRUE(gps_policy(&q) == gps_policy(&share)) << q;
        }
    }
}

/* --- what an answer may depend on --- */

TEST(Policy, AnAnswerDependsOnNothingElse) {
    for (const gps_question &q : questions()) {
        gps_question other = q;
        const bool held = others_have_it_mapped(q.known);
        if (!(q.ask == GPS_ASK_FREE && held))
            other.on_free = GPS_FREE_DEFER;
        if (!(q.ask == GPS_ASK_FREE && (held || q.known == GPS_KNOWN_RESULT)))
            other.exiting = false;
        if (!(q.ask == GPS_ASK_EXIT && q.known == GPS_KNOWN_HELD))
            other.linger = false;
        if (!is_before_the_call(q.ask) && q.mode == GPS_MODE_AUDIT)
            other.mode = GPS_MODE_SHARE;
        if (q.ask != GPS_ASK_EXIT && !(q.ask == GPS_ASK_FREE && q.known == GPS_KNOWN_HELD))
            other.waited = false;
        EXPECT_TRUE(gps_policy(&q) == gps_policy(&other)) << q;
    }
}

/* --- findings --- */

TEST(Policy, NamesEveryFindingOfAProgramInBothModesAndNoOther) {
    for (gps_mode mode : {GPS_MODE_SHARE, GPS_MODE_AUDIT}) {
        std::set<int> named;
        for (const gps_question &q : questions(mode))
            named.insert(gps_policy(&q).finding);
        for (int finding = 0; finding < GPS_FINDING_COUNT; finding++)
            EXPECT_EQ(named.count(static_cast<int>(finding)) != 0, is_about_the_program(finding))
                << gps_finding_id(static_cast<gps_finding>(finding));
    }
}

/* What one question leads to, a wait and the question after it. */
std::vector<gps_answer> answers_to(const gps_question &q) {
    std::vector<gps_answer> answers = {gps_policy(&q)};
    if (answers[0].verdict == GPS_WAIT) {
        const gps_question second = after_the_wait(q);
        answers.push_back(gps_policy(&second));
    }
    return answers;
}

std::multiset<int> findings_of(const gps_question &q) {
    std::multiset<int> findings;
    for (const gps_answer &answer : answers_to(q))
        if (says(answer))
            findings.insert(answer.finding);
    return findings;
}

TEST(Policy, OneCallHasOneFindingWaitOrNot) {
    for (const gps_question &q : questions()) {
        EXPECT_LE(findings_of(q).size(), 1u) << q;
        if (q.known == GPS_KNOWN_HELD && q.mode != GPS_MODE_OFF && !q.waited &&
            (q.ask == GPS_ASK_FREE || q.ask == GPS_ASK_EXIT)) {
            EXPECT_EQ(findings_of(q).size(), 1u) << q;
        }
    }
}

TEST(Policy, AuditSaysWhatShareSays) {
    for (const gps_question &q : questions(GPS_MODE_AUDIT)) {
        EXPECT_EQ(findings_of(q), findings_of(with(q, GPS_MODE_SHARE))) << q;
    }
}

TEST(Policy, WhatTheDriverRefusedIsAnErrorAndWhatItDidIsNone) {
    for (const gps_question &q : questions()) {
        const gps_answer answer = gps_policy(&q);
        // The exporter may have meant no more of its memory to be seen; CUDA's end has closed it.
        if (says(answer) && !is_before_the_call(q.ask) && answer.finding != GPS_IMPORT_PARTIAL &&
            answer.finding != GPS_CALL_AFTER_SHUTDOWN) {
            EXPECT_EQ(gps_finding_level(answer.finding) == GPS_LEVEL_ERROR,
                      q.ask < GPS_ASK_NOTED_EXPORT)
                << q;
        }
    }
}

gps_finding finding_of(gps_ask ask, gps_known known) {
    gps_question q = {};
    q.ask = ask;
    q.known = known;
    q.mode = GPS_MODE_SHARE;
    return gps_policy(&q).finding;
}

/* Whatever is known, or is not. */
TEST(Policy, EveryIpcCallThatIsRefusedHasAName) {
    for (gps_ask ask : {GPS_ASK_CLOSED, GPS_ASK_EXPORTED, GPS_ASK_EVENT_SHARED,
                        GPS_ASK_EVENT_OPENED, GPS_ASK_OPENED})
        for (gps_known known :
             {GPS_KNOWN_LIVE, GPS_KNOWN_NO_CONTEXT, GPS_KNOWN_NO_OUTPUT, GPS_KNOWN_SHUT_DOWN})
            EXPECT_NE(static_cast<int>(finding_of(ask, known)), GPS_NO_FINDING) << ask;
}

/* One mistake, whichever way it is noticed. */
TEST(Policy, AMistakeHasOneNameOnEveryWay) {
    for (gps_ask ask : {GPS_ASK_CLOSED, GPS_ASK_EXPORTED, GPS_ASK_EVENT_SHARED,
                        GPS_ASK_EVENT_OPENED, GPS_ASK_OPENED})
        EXPECT_EQ(finding_of(ask, GPS_KNOWN_NO_CONTEXT), GPS_OPEN_NO_CONTEXT) << ask;
    EXPECT_EQ(finding_of(GPS_ASK_OPENED, GPS_KNOWN_STALE),
              finding_of(GPS_ASK_OPEN, GPS_KNOWN_STALE));
    EXPECT_EQ(finding_of(GPS_ASK_FREED, GPS_KNOWN_FREED),
              finding_of(GPS_ASK_FREE, GPS_KNOWN_DEFERRED));
    EXPECT_EQ(finding_of(GPS_ASK_EXPORTED, GPS_KNOWN_NOTHING),
              finding_of(GPS_ASK_EXPORT, GPS_KNOWN_DEFERRED));
    EXPECT_EQ(finding_of(GPS_ASK_NOTED_RESET, GPS_KNOWN_OPEN),
              finding_of(GPS_ASK_NOTED_RESET, GPS_KNOWN_HELD));
    EXPECT_EQ(finding_of(GPS_ASK_NOTED_RESET, GPS_KNOWN_EXPORTED),
              finding_of(GPS_ASK_NOTED_END, GPS_KNOWN_EXPORTED));
}

} // namespace
