/* trace_test.cpp - stacks are taken once, told apart, and recognised. */

extern "C" {
#include "stack/call.h"
#include "stack/stack.h"
#include "stack/trace.h"
}

namespace {

#define APART __attribute__((noinline, noclone, optimize("no-optimize-sibling-calls")))
#ifdef __clang__
#undef APART
#define APART __attribute__((noinline, disable_tail_calls))
#endif

thread_local std::vector<uintptr_t> walked;

/* A wrapper, as hooks.c has them. */
APART uint32_t hooked() {
    gps_call_enter("cuMemAlloc_v2", GPS_SITE_HERE);
    const uint32_t trace = gps_trace_here();
    gps_step steps[16];
    walked.clear();
    for (unsigned i = 0, n = gps_stack_walk(gps_call_site(), steps, 16); i < n; i++)
        walked.push_back(steps[i].address);
    gps_call_leave();
    return trace;
}

volatile int sink;

APART uint32_t inner() {
    const uint32_t trace = hooked();
    sink = 1;
    return trace;
}

APART uint32_t one() {
    const uint32_t trace = inner();
    sink = 2;
    return trace;
}

APART uint32_t other() {
    const uint32_t trace = inner();
    sink = 3;
    return trace;
}

APART uint32_t deep(int levels) {
    const uint32_t trace = levels ? deep(levels - 1) : inner();
    sink = levels;
    return trace;
}

std::vector<uintptr_t> addresses_of(uint32_t trace) {
    const uintptr_t *addresses = nullptr;
    const unsigned count = gps_trace_addresses(trace, &addresses);
    return {addresses, addresses + count};
}

class Trace : public testing::Test {
  protected:
    Trace() {
        gps_stack_start();
        gps_trace_start(16, true, nullptr);
    }
    ~Trace() override {
        gps_trace_start(0, false, nullptr);
    }
};

TEST_F(Trace, StacksThatDifferFurtherOutDiffer) {
    for (int i = 0; i < 100; i++) {
        const uint32_t a = one(), b = other();
        EXPECT_NE(a, b);
        EXPECT_EQ(addresses_of(a)[0], addresses_of(b)[0]); /* in inner() */
        EXPECT_NE(addresses_of(a)[1], addresses_of(b)[1]);
        EXPECT_NE(gps_trace_hash(a), gps_trace_hash(b));
    }
}

/* The frames of the innermost calls stand at one place with the same addresses in both; only a look
 * further out tells them apart. */
TEST_F(Trace, AnEqualBeginningIsNotEnough) {
    std::vector<uint32_t> traces;
    for (int round = 0; round < 3; round++)
        for (int levels = 0; levels < 20; levels++)
            traces.push_back(deep(levels));
    for (int levels = 0; levels < 20; levels++) {
        EXPECT_EQ(traces[levels], traces[20 + levels]);
        EXPECT_EQ(traces[levels], traces[40 + levels]);
        for (int more = levels + 1; more < 10; more++)
            EXPECT_NE(traces[levels], traces[more]);
    }
}

/* A frame whose size differs from call to call. */
APART uint32_t padded(size_t bytes) {
    volatile char *room = static_cast<char *>(__builtin_alloca(bytes));
    room[0] = 0;
    const uint32_t trace = inner();
    sink = room[0];
    return trace;
}

TEST_F(Trace, FramesOfManySizesDoNotFillTheDepot) {
    std::set<uint32_t> traces;
    std::set<uint64_t> hashes;
    for (size_t i = 1; i <= 200; i++) {
        const uint32_t trace = padded(i * 16);
        EXPECT_EQ(addresses_of(trace), walked);
        traces.insert(trace);
        hashes.insert(gps_trace_hash(trace));
    }
    EXPECT_LE(traces.size(), 16u);
    EXPECT_EQ(hashes.size(), 1u);
}

TEST_F(Trace, ARecognisedStackIsTheOneThatAWalkFinds) {
    std::vector<uintptr_t> addresses;
    for (int i = 0; i < 3; i++) {
        addresses = addresses_of(one());
        EXPECT_EQ(addresses, walked);
    }
    ASSERT_GE(addresses.size(), 4u);
    for (uintptr_t address : addresses) {
        gps_frame frame;
        gps_stack_frame(address, &frame);
        EXPECT_EQ(frame.address, address);
        EXPECT_NE(frame.module[0], '\0');
        EXPECT_LT(frame.offset, address);
    }
}

TEST_F(Trace, IsAsDeepAsConfigured) {
    gps_trace_start(3, true, nullptr);
    EXPECT_EQ(addresses_of(deep(10)).size(), 3u);
    gps_trace_start(64, true, nullptr);
    EXPECT_GT(addresses_of(deep(50)).size(), 50u);
    gps_trace_start(0, true, nullptr);
    EXPECT_EQ(one(), GPS_NO_TRACE);
}

TEST_F(Trace, IsKeptOnlyWhereItIsWanted) {
    gps_trace_start(16, false, nullptr);
    gps_call_enter("cuMemAlloc_v2", GPS_SITE_HERE);
    EXPECT_EQ(gps_trace_kept(), GPS_NO_TRACE);
    EXPECT_NE(gps_trace_here(), GPS_NO_TRACE);
    gps_call_leave();
}

/* --- what is shown for a native stack --- */

gps_frame line(const char *file, uint32_t number) {
    gps_frame frame;
    memset(&frame, 0, sizeof(frame));
    snprintf(frame.module, sizeof(frame.module), "%s", file);
    snprintf(frame.function, sizeof(frame.function), "draw");
    frame.line = number;
    return frame;
}

TEST_F(Trace, WhatIsShownIsOneByItsContentsAndItsNativeStack) {
    const uint32_t a = one(), b = other();
    const gps_frame frames[] = {line("view.py", 3), line("view.py", 9)};
    const gps_frame same[] = {line("view.py", 3), line("view.py", 9)};
    const gps_frame differs[] = {line("view.py", 3), line("view.py", 8)};
    const uint32_t shown = gps_trace_shown(a, frames, 2);
    EXPECT_NE(shown, a);
    EXPECT_EQ(gps_trace_shown(a, same, 2), shown);
    EXPECT_NE(gps_trace_shown(a, differs, 2), shown);
    EXPECT_NE(gps_trace_shown(a, frames, 1), shown);
    EXPECT_NE(gps_trace_shown(b, frames, 2), shown);
    EXPECT_EQ(gps_trace_hash(gps_trace_shown(b, frames, 2)), gps_trace_hash(shown));
    EXPECT_NE(gps_trace_hash(gps_trace_shown(a, differs, 2)), gps_trace_hash(shown));
}

gps_trace_more answer;
unsigned asked;

uint32_t ask(uint32_t trace, unsigned depth, gps_trace_more *is) {
    const gps_frame frame = line("view.py", 3);
    EXPECT_EQ(depth, 16u);
    asked++;
    *is = answer;
    return answer == GPS_TRACE_MORE ? gps_trace_shown(trace, &frame, 1) : trace;
}

APART uint32_t kept() {
    gps_call_enter("cuMemAlloc_v2", GPS_SITE_HERE);
    const uint32_t trace = gps_trace_kept();
    gps_call_leave();
    return trace;
}

APART unsigned asked_of(unsigned calls, uint32_t (*call)()) {
    asked = 0;
    for (unsigned i = 0; i < calls; i++)
        call();
    return asked;
}

/* Each of them is a stack of its own. */
APART uint32_t kept_never() {
    const uint32_t trace = kept();
    sink = 5;
    return trace;
}
APART uint32_t kept_perhaps() {
    const uint32_t trace = kept();
    sink = 6;
    return trace;
}
APART uint32_t kept_more() {
    const uint32_t trace = kept();
    sink = 7;
    return trace;
}

TEST_F(Trace, WhoHasNothingMoreToShowIsAskedLessAndLess) {
    gps_trace_start(16, true, ask);
    answer = GPS_TRACE_NEVER_MORE;
    EXPECT_EQ(asked_of(100, kept_never), 1u);
    answer = GPS_TRACE_NO_MORE;
    EXPECT_EQ(asked_of(100, kept_perhaps), 8u) << "calls 0, 1, 2, 4, 8, 16, 32 and 64";
    answer = GPS_TRACE_MORE;
    EXPECT_EQ(asked_of(100, kept_more), 100u);
    EXPECT_NE(gps_trace_native(kept_more()), kept_more());
    gps_trace_start(16, true, nullptr);
    EXPECT_EQ(asked_of(10, kept_more), 0u);
}

TEST_F(Trace, WithoutACallThereIsNone) {
    EXPECT_EQ(gps_trace_here(), GPS_NO_TRACE);
    const uintptr_t *addresses;
    EXPECT_EQ(gps_trace_addresses(GPS_NO_TRACE, &addresses), 0u);
    EXPECT_EQ(gps_trace_hash(GPS_NO_TRACE), 0u);
}

/* The user's call, not what the runtime makes of it. */
APART uint32_t runtime_call() {
    gps_call.runtime = "cudaMalloc";
    gps_call.runtime_site = GPS_SITE_HERE;
    const uint32_t trace = inner();
    gps_call.runtime = nullptr;
    return trace;
}

APART uint32_t user() {
    const uint32_t trace = runtime_call();
    sink = 4;
    return trace;
}

TEST_F(Trace, BeginsAtTheCallThatTheUserWrote) {
    const uint32_t through = user(), direct = inner();
    EXPECT_NE(addresses_of(through)[0], addresses_of(direct)[0]);
    const auto all = addresses_of(through);
    EXPECT_EQ(std::count(all.begin(), all.end(), addresses_of(direct)[0]), 0);
}

TEST_F(Trace, ManyThreadsAgree) {
    std::vector<std::thread> threads;
    std::vector<std::vector<uint32_t>> got(8);
    for (auto &mine : got)
        threads.emplace_back([&mine] {
            for (int i = 0; i < 2000; i++)
                mine.push_back(i % 2 ? one() : deep(i % 7));
        });
    for (std::thread &thread : threads)
        thread.join();
    for (const auto &mine : got)
        for (size_t i = 0; i < mine.size(); i++) {
            ASSERT_NE(mine[i], GPS_NO_TRACE);
            EXPECT_EQ(mine[i], mine[i % 14]) << i; /* both counts begin again */
        }
}

TEST_F(Trace, AChildGoesOnWithWhatWasStored) {
    const uint32_t before = one();
    const pid_t child = fork();
    if (child == 0) {
        gps_trace_reset();
        _exit(addresses_of(before).size() > 2 && deep(3) != GPS_NO_TRACE ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

} // namespace
