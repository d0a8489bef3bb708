/* policy_test.cpp - what holds for every question there is. */

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

gps_answer in_share(gps_question q) {
    q.mode = GPS_MODE_SHARE;
    return gps_policy(&q);
}

bool operator==(const gps_answer &a, const gps_answer &b) {
    return a.verdict == b.verdict && a.code == b.code && a.finding == b.finding;
}

/* What one question leads to, a wait and the question after it. */
std::multiset<int> findings_of(gps_question q) {
    std::multiset<int> findings;
    gps_answer answer = gps_policy(&q);
    if (says(answer))
        findings.insert(answer.finding);
    if (answer.verdict == GPS_WAIT) {
        q.waited = true;
        answer = gps_policy(&q);
        if (says(answer))
            findings.insert(answer.finding);
    }
    return findings;
}

bool suits(const gps_question &q, const gps_answer &answer) {
    switch (answer.verdict) {
    case GPS_HAND_OVER:
        return q.ask == GPS_ASK_FREE && q.known == GPS_KNOWN_RESULT;
    case GPS_DEFER:
        return q.ask == GPS_ASK_FREE;
    case GPS_WAIT:
        return q.ask == GPS_ASK_FREE || q.ask == GPS_ASK_EXIT;
    case GPS_DENY:
        return q.ask != GPS_ASK_EXIT;
    case GPS_FORWARD:
        return true;
    }
    return false;
}

int code_for(const gps_question &q, const gps_answer &answer) {
    return answer.verdict != GPS_DENY  ? GPS_OK
           : q.ask == GPS_ASK_DESTROY  ? GPS_INVALID_HANDLE
           : q.known == GPS_KNOWN_HELD ? GPS_NOT_PERMITTED
                                       : GPS_INVALID_VALUE;
}

bool others_have_it_mapped(gps_known known) {
    return known == GPS_KNOWN_HELD || known == GPS_KNOWN_CACHED;
}

/* The same question without what its answer may not depend on. */
gps_question bare(const gps_question &q) {
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
    return other;
}

using Q = const gps_question &;
using A = const gps_answer &;

/* What holds for every question of which `of` is true. */
struct Law {
    const char *name;
    bool (*of)(Q, A), (*holds)(Q, A);
};

const Law laws[] = {
    /* --- verdicts --- */
    {"OffNeverActsAndNeverSpeaks", [](Q q, A) { return q.mode == GPS_MODE_OFF; },
     [](Q, A a) { return a.verdict == GPS_FORWARD && !says(a); }},
    {"AuditNeverActsButOnWhatOnlyShareBringsAbout",
     [](Q q, A) {
         return q.mode == GPS_MODE_AUDIT && q.known != GPS_KNOWN_RESULT &&
                q.known != GPS_KNOWN_DEFERRED;
     },
     [](Q, A a) { return a.verdict == GPS_FORWARD; }},
    {"WhatHasHappenedIsOnlyNamed", [](Q q, A) { return !is_before_the_call(q.ask); },
     [](Q, A a) { return a.verdict == GPS_FORWARD; }},
    {"EachVerdictIsForTheCallThatItSuits", [](Q, A) { return true; }, suits},
    {"OnlyADenialHasACodeWhichIsTheDriversOwnForIt", [](Q, A) { return true; },
     [](Q q, A a) { return a.code == code_for(q, a); }},
    {"ThereIsAReasonForADenial", [](Q q, A a) { return a.verdict == GPS_DENY && !q.waited; },
     [](Q q, A a) {
         return says(a) && (q.known == GPS_KNOWN_HELD || q.known == GPS_KNOWN_DEFERRED ||
                            q.known == GPS_KNOWN_STALE || q.known == GPS_KNOWN_FREED ||
                            q.known == GPS_KNOWN_INTERIOR);
     }},
    {"NoWaitFollowsAWait", [](Q q, A) { return q.waited; },
     [](Q, A a) { return a.verdict != GPS_WAIT; }},
    {"NothingIsPutOffWhereTheProcessEnds",
     [](Q q, A) { return q.ask == GPS_ASK_FREE && q.exiting; },
     [](Q q, A a) {
         return a.verdict == GPS_FORWARD ||
                (a.verdict == GPS_DENY &&
                 (q.known == GPS_KNOWN_DEFERRED || q.known == GPS_KNOWN_INTERIOR));
     }},
    /* --- what sharing is for --- */
    /* The importers' programs have closed it, so its maker does nothing wrong, and waits for
     * nothing. */
    {"WhatOthersOnlyCacheIsNobodysFault", [](Q q, A) { return q.known == GPS_KNOWN_CACHED; },
     [](Q, A a) { return !says(a) && (a.verdict == GPS_FORWARD || a.verdict == GPS_DEFER); }},
    {"AResultIsNobodysFault",
     [](Q q, A) { return q.known == GPS_KNOWN_RESULT && q.mode != GPS_MODE_OFF; },
     [](Q, A a) { return !says(a); }},
    {"AResultIsHandedOverAtItsFree",
     [](Q q, A) {
         return q.known == GPS_KNOWN_RESULT && q.mode != GPS_MODE_OFF && q.ask == GPS_ASK_FREE &&
                !q.exiting;
     },
     [](Q, A a) { return a.verdict == GPS_HAND_OVER; }},
    {"AResultIsWaitedForAtTheEnd",
     [](Q q, A) {
         return q.known == GPS_KNOWN_RESULT && q.mode == GPS_MODE_SHARE && q.ask == GPS_ASK_EXIT &&
                !q.waited;
     },
     [](Q, A a) { return a.verdict == GPS_WAIT; }},
    /* The driver would open another buffer, crash, or do to memory what is done already for the
     * program. */
    {"ShareKeepsWhatIsGoneFromTheDriver",
     [](Q q, A) {
         return q.mode == GPS_MODE_SHARE &&
                ((q.known == GPS_KNOWN_STALE && q.ask == GPS_ASK_OPEN) ||
                 (q.known == GPS_KNOWN_FREED && q.ask == GPS_ASK_DESTROY) ||
                 (q.known == GPS_KNOWN_DEFERRED &&
                  (q.ask == GPS_ASK_FREE || q.ask == GPS_ASK_EXPORT)));
     },
     [](Q, A a) { return a.verdict == GPS_DENY; }},
    /* Where the driver is asked about it at all, it frees the whole. */
    {"ShareFreesNothingByAPointerInside",
     [](Q q, A) {
         return q.mode == GPS_MODE_SHARE && q.ask == GPS_ASK_FREE && q.known == GPS_KNOWN_INTERIOR;
     },
     [](Q, A a) { return a.verdict == GPS_DENY && a.finding == GPS_FREE_INTERIOR; }},
    /* Wherever one comes to be, the program's free has succeeded before. */
    {"ADeferredFreeIsOneInEveryMode",
     [](Q q, A) {
         return q.mode == GPS_MODE_AUDIT && q.known == GPS_KNOWN_DEFERRED &&
                is_before_the_call(q.ask);
     },
     [](Q q, A a) { return a == in_share(q); }},
    {"AnAnswerDependsOnNothingElse", [](Q, A) { return true; },
     [](Q q, A a) {
         const gps_question other = bare(q);
         return a == gps_policy(&other);
     }},
    /* --- findings --- */
    {"OneCallHasAtMostOneFindingWaitOrNot", [](Q, A) { return true; },
     [](Q q, A) { return findings_of(q).size() <= 1; }},
    {"WhatOthersHoldHasAFinding",
     [](Q q, A) {
         return q.known == GPS_KNOWN_HELD && q.mode != GPS_MODE_OFF && !q.waited &&
                (q.ask == GPS_ASK_FREE || q.ask == GPS_ASK_EXIT);
     },
     [](Q q, A) { return findings_of(q).size() == 1; }},
    {"AuditSaysWhatShareSays", [](Q q, A) { return q.mode == GPS_MODE_AUDIT; },
     [](Q q, A) {
         gps_question share = q;
         share.mode = GPS_MODE_SHARE;
         return findings_of(q) == findings_of(share);
     }},
    /* The exporter may have meant no more of its memory to be seen; CUDA's end has closed it. */
    {"WhatTheDriverRefusedIsAnErrorAndWhatItDidIsNone",
     [](Q q, A a) {
         return says(a) && !is_before_the_call(q.ask) && a.finding != GPS_IMPORT_PARTIAL &&
                a.finding != GPS_CALL_AFTER_SHUTDOWN;
     },
     [](Q q, A a) {
         return (gps_finding_level(a.finding) == GPS_LEVEL_ERROR) == (q.ask < GPS_ASK_NOTED_EXPORT);
     }},
};

class PolicyLaw : public testing::TestWithParam<Law> {};

TEST_P(PolicyLaw, Holds) {
    for (const gps_question &q : questions()) {
        const gps_answer answer = gps_policy(&q);
        EXPECT_TRUE(!GetParam().of(q, answer) || GetParam().holds(q, answer)) << q;
    }
}

INSTANTIATE_TEST_SUITE_P(All, PolicyLaw, testing::ValuesIn(laws),
                         [](const auto &law) { return std::string(law.param.name); });

TEST(Policy, NamesEveryFindingOfAProgramInBothModesAndNoOther) {
    for (gps_mode mode : {GPS_MODE_SHARE, GPS_MODE_AUDIT}) {
        std::set<int> named;
        for (const gps_question &q : questions())
            if (q.mode == mode)
                named.insert(gps_policy(&q).finding);
        for (int finding = 0; finding < GPS_FINDING_COUNT; finding++)
            EXPECT_EQ(named.count(static_cast<int>(finding)) != 0, is_about_the_program(finding))
                << gps_finding_id(static_cast<gps_finding>(finding));
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
