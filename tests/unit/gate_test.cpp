// gate_test.cpp - the gate: who is inside keeps it from closing, who comes waits, and neither a
// jump nor a signal nor the end of a thread leaves it shut or open where it must not be.
#include <future>

#include "c_gate.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr uint64_t MS = 1000000;

struct Gate : testing::Test {
    Gate() {
        test_gate_reset();
        EXPECT_TRUE(test_gate_start());
    }
    ~Gate() override {
        test_gate_open();
    }
};

// A thread that is inside until it is told to leave.
struct Inside {
    std::atomic<bool> entered{false}, over{false};
    std::thread thread{[this] {
        test_pass pass;
        test_gate_enter(&pass, 0);
        entered = true;
        while (!over)
            std::this_thread::yield();
        test_gate_leave(&pass);
    }};
    void leave() {
        over = true;
        thread.join();
    }
};

TEST_F(Gate, ClosesWhenNobodyIsInside) {
    EXPECT_TRUE(test_gate_close(MS, false));
    EXPECT_TRUE(test_gate_hold());
    test_gate_open();
    Inside other;
    while (!other.entered)
        std::this_thread::yield();
    EXPECT_FALSE(test_gate_close(5 * MS, false));
    EXPECT_FALSE(test_gate_is_closed()) << "one that could not be closed is open";
    EXPECT_FALSE(test_gate_close(5 * MS, true));
    EXPECT_FALSE(test_gate_is_closed());
    other.leave();
    EXPECT_TRUE(test_gate_close(MS, true));
}

struct RefusedGate : Gate, testing::WithParamInterface<bool> {
    RefusedGate() {
        test_gate_refuse(GetParam());
    }
    ~RefusedGate() override {
        test_gate_refuse(false);
    }
};

INSTANTIATE_TEST_SUITE_P(Membarrier, RefusedGate, testing::Bool());

TEST_P(RefusedGate, NobodyIsInsideWhileItIsHeld) {
    std::atomic<bool> over{false}, held{false};
    std::atomic<unsigned> passes{0}, wrong{0}, swaps{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; i++)
        threads.emplace_back([&] {
            while (!over) {
                test_pass pass;
                test_gate_enter(&pass, 0);
                wrong += held;
                passes++;
                wrong += held;
                test_gate_leave(&pass);
            }
        });
    const auto until = Clock::now() + milliseconds(700);
    while (Clock::now() < until) {
        const bool surely = swaps % 2;
        if (!test_gate_close(20 * MS, surely))
            continue;
        if (test_gate_hold()) {
            held = true;
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            held = false;
            swaps++;
        }
        test_gate_open();
    }
    over = true;
    for (auto &thread : threads)
        thread.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_GT(passes, 1000u);
    EXPECT_GT(swaps, 0u);
}

// Another thread, which passes the gate once.
static std::thread pass_through(std::atomic<bool> &through) {
    return std::thread([&through] {
        test_pass pass;
        test_gate_enter(&pass, 0);
        through = true;
        test_gate_leave(&pass);
    });
}

// A closer that waits for the device keeps nobody for long, unless it must.
TEST_F(Gate, IsOpenedByThoseWhoWaitedTooLong) {
    for (const bool surely : {false, true}) {
        ASSERT_TRUE(test_gate_close(MS, surely));
        const auto begin = Clock::now();
        std::atomic<bool> through{false};
        std::thread other = pass_through(through);
        while (!through && Clock::now() - begin < milliseconds(400))
            std::this_thread::yield();
        EXPECT_EQ(through, !surely);
        EXPECT_EQ(test_gate_hold(), surely) << "the swap must not begin";
        test_gate_open();
        other.join();
    }
}

// How long a thread takes to pass with work of a stream.
static std::chrono::nanoseconds pass_with(uint64_t stream) {
    std::chrono::nanoseconds took{0};
    std::thread([&] {
        test_pass pass;
        const auto begin = Clock::now();
        test_gate_enter(&pass, stream);
        took = Clock::now() - begin;
        test_gate_leave(&pass);
    }).join();
    return took;
}

// Nobody opens it: who is kept out comes in after 25 ms, and then it is open for all.
TEST_F(Gate, KeepsOutTheWorkOfSomeStreamsAlone) {
    const uint64_t kept = 1000, other = 2000;
    test_gate_keep_out(kept);
    pass_with(other);
    EXPECT_TRUE(test_gate_keeps_out()) << "it did not wait until it could open it";
    EXPECT_GE(pass_with(kept), milliseconds(25));
    EXPECT_FALSE(test_gate_keeps_out());
    test_gate_keep_out(kept);
    ASSERT_TRUE(test_gate_close(MS, false));
    EXPECT_FALSE(test_gate_keeps_out()) << "closed for all";
    test_gate_open();
    test_gate_keep_out(kept);
    test_gate_open();
    EXPECT_FALSE(test_gate_keeps_out());
}

static std::atomic<unsigned> woken;

// A handler runs in a thread that waits at the gate.
TEST_F(Gate, SignalsComeThroughToThoseWhoWait) {
    struct sigaction action = {};
    action.sa_handler = [](int) { woken++; };
    sigaction(SIGUSR1, &action, nullptr);
    ASSERT_TRUE(test_gate_close(MS, true));
    std::atomic<bool> through{false};
    std::thread other = pass_through(through);
    uint64_t stream = 1;
    while (!test_gate_is_held(&stream))
        std::this_thread::yield();
    EXPECT_EQ(stream, 0u) << "the work with which it came";
    pthread_kill(other.native_handle(), SIGUSR1);
    while (!woken)
        std::this_thread::yield();
    EXPECT_FALSE(through) << "it waits on";
    test_gate_open();
    other.join();
    EXPECT_FALSE(test_gate_is_held(&stream));
}

TEST_F(Gate, ASwapThatHasBegunIsWaitedFor) {
    ASSERT_TRUE(test_gate_close(MS, false));
    ASSERT_TRUE(test_gate_hold());
    std::atomic<bool> through{false};
    std::thread other = pass_through(through);
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_FALSE(through);
    test_gate_open();
    other.join();
    EXPECT_TRUE(through);
}

// As in a handler: whoever is inside already goes on.
__attribute__((noinline)) void pass_once() {
    test_pass pass;
    test_gate_enter(&pass, 0);
    test_gate_leave(&pass);
}

TEST_F(Gate, APassInAPassDoesNotWait) {
    test_pass outer;
    test_gate_enter(&outer, 0);
    std::atomic<bool> tried{false};
    std::thread closer([&] {
        EXPECT_FALSE(test_gate_close(50 * MS, true));
        tried = true;
    });
    while (!test_gate_is_closed() && !tried)
        std::this_thread::yield();
    pass_once();
    closer.join();
    EXPECT_FALSE(test_gate_close(MS, false)) << "the outer one is still inside";
    EXPECT_FALSE(test_gate_close_in_a_call(MS)) << "and lies above that call";
    test_gate_leave(&outer);
    EXPECT_TRUE(test_gate_close(MS, false));
}

sigjmp_buf landing;

__attribute__((noinline)) void jump_out_of_a_pass() {
    test_pass pass;
    test_gate_enter(&pass, 0);
    siglongjmp(landing, 1);
}

TEST_F(Gate, AFrameThatWasJumpedOutOfCountsUntilTheNextPass) {
    if (sigsetjmp(landing, 1) == 0)
        jump_out_of_a_pass();
    EXPECT_FALSE(test_gate_close(2 * MS, false));
    pass_once();
    EXPECT_TRUE(test_gate_close(MS, false));
}

TEST_F(Gate, AFrameThatWasJumpedOutOfCountsUntilItsThreadClosesInACall) {
    if (sigsetjmp(landing, 1) == 0)
        jump_out_of_a_pass();
    EXPECT_TRUE(test_gate_close_in_a_call(2 * MS));
}

TEST_F(Gate, AThreadThatJumpedOutAndEndedIsOutside) {
    std::thread([] {
        if (sigsetjmp(landing, 1) == 0)
            jump_out_of_a_pass();
    }).join();
    EXPECT_TRUE(test_gate_close(20 * MS, false));
}

std::atomic<unsigned> handled;

void pass_in_a_handler(int) {
    test_pass pass;
    test_gate_enter(&pass, 0);
    handled++;
    test_gate_leave(&pass);
}

TEST_F(Gate, HandlersPassWhereverTheyComeBetween) {
    struct sigaction action = {}, before;
    action.sa_handler = pass_in_a_handler;
    sigaction(SIGUSR1, &action, &before);
    std::atomic<bool> over{false};
    std::atomic<unsigned> passes{0};
    std::thread passer([&] {
        while (!over) {
            test_pass pass;
            test_gate_enter(&pass, 0);
            passes++;
            test_gate_leave(&pass);
        }
    });
    unsigned closed = 0;
    for (int i = 0; handled < 200; i++) {
        pthread_kill(passer.native_handle(), SIGUSR1);
        closed += test_gate_close(20 * MS, i % 2);
        test_gate_open();
    }
    over = true;
    passer.join();
    sigaction(SIGUSR1, &before, nullptr);
    EXPECT_GT(closed, 100u);
    EXPECT_TRUE(test_gate_close(MS, false));
}

// More threads than there are places for, one after the other: the places of the dead are used
// again.
TEST_F(Gate, ServesAnyNumberOfThreads) {
    for (int i = 0; i < 1500; i++)
        std::thread([] {
            test_pass pass;
            test_gate_enter(&pass, 0);
            test_gate_leave(&pass);
        }).join();
    EXPECT_TRUE(test_gate_close(MS, false));
}

// So many threads, all of them at once, that pass when they are told to.
struct Crowd {
    explicit Crowd(unsigned count) : waiting(count) {
        for (unsigned i = 0; i < count; i++)
            threads.emplace_back([this] {
                test_pass pass;
                begun.wait();
                test_gate_enter(&pass, 0);
                test_gate_leave(&pass);
                if (--waiting == 0)
                    passed.set_value();
                over.wait();
            });
    }
    ~Crowd() {
        end.set_value();
        for (auto &thread : threads)
            thread.join();
    }
    void pass() {
        begin.set_value();
        passed.get_future().wait();
    }
    std::promise<void> begin, passed, end;
    const std::shared_future<void> begun{begin.get_future()}, over{end.get_future()};
    std::atomic<unsigned> waiting;
    std::vector<std::thread> threads;
};

TEST_F(Gate, ServesThousandsOfThreadsAtOnce) {
    Crowd crowd(2500);
    crowd.pass();
    EXPECT_TRUE(test_gate_close(20 * MS, false));
}

} // namespace
