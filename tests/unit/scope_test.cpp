// scope_test.cpp - a wait inside a scope has the mask that the program has, however scopes are
// left and wherever their frames lie.
#include <alloca.h>

extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#pragma GCC diagnostic pop
}

namespace {

uint64_t unblockable; // of the signals, as under an emulator

sigset_t mask_now() {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    return now;
}

// The kernel's part of it.
uint64_t bits(const sigset_t &set) {
    return *reinterpret_cast<const uint64_t *>(&set);
}

uint64_t bits_now() {
    return bits(mask_now());
}

uint64_t mask_of(std::initializer_list<int> signals) {
    uint64_t mask = 0;
    for (const int signal : signals)
        mask |= UINT64_C(1) << (signal - 1);
    return mask;
}

void set_mask(uint64_t mask) {
    sigset_t set;
    sigemptyset(&set);
    *reinterpret_cast<uint64_t *>(&set) = mask;
    pthread_sigmask(SIG_SETMASK, &set, nullptr);
}

} // namespace

// The library's, too.
extern "C" int sigprocmask(int how, const sigset_t *mask, sigset_t *before) noexcept {
    sigset_t less;
    if (!mask)
        return pthread_sigmask(how, mask, before);
    less = *mask;
    *reinterpret_cast<uint64_t *>(&less) &= ~unblockable;
    return pthread_sigmask(how, &less, before);
}

namespace {

sigjmp_buf landing;

enum class During { NOTHING, RAISE, JUMP } during;
uint64_t seen; // the mask of the last wait

int synchronize() {
    const uint64_t mask = bits_now();
    const During what = during;
    during = During::NOTHING;
    if (what == During::RAISE)
        raise(SIGUSR1);
    if (what == During::JUMP)
        siglongjmp(landing, 1);
    seen = mask;
    return GPS_OK;
}

uint64_t wait_with(During what = During::NOTHING) {
    during = what;
    gps_scope_synchronize();
    return seen;
}

__attribute__((noinline)) uint64_t mask_of_a_wait(During what = During::NOTHING) {
    GPS_SCOPE();
    return wait_with(what);
}

// The same in a frame far below.
__attribute__((noinline)) uint64_t mask_of_a_deep_wait() {
    volatile char *const space = static_cast<char *>(alloca(4096));
    space[0] = 0;
    const uint64_t mask = mask_of_a_wait();
    return mask + space[0];
}

struct Scope : testing::Test {
    Scope() {
        table.synchronize = synchronize;
        ::gps_operations = &table;
        set_mask(PROGRAM);
    }
    ~Scope() override {
        EXPECT_EQ(bits_now() & ~mask_of({SIGUSR1}), PROGRAM);
        set_mask(bits(usual));
        unblockable = 0;
        ::gps_operations = before;
    }
    static constexpr uint64_t PROGRAM = UINT64_C(1) << (SIGWINCH - 1);
    const sigset_t usual = mask_now();
    const struct gps_operations *const before = ::gps_operations;
    struct gps_operations table = {};
};

TEST_F(Scope, BlocksAllButFaultsAndWaitsWithTheProgramsMask) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    const uint64_t inside = bits_now();
    EXPECT_EQ(inside & mask_of({SIGINT, SIGTERM, SIGUSR1, SIGALRM}),
              mask_of({SIGINT, SIGTERM, SIGUSR1, SIGALRM}));
    EXPECT_EQ(inside & mask_of({SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}), 0u);
    EXPECT_EQ(wait_with(), PROGRAM);
    EXPECT_EQ(bits_now(), inside);
    gps_scope_end(&scope);
    EXPECT_EQ(bits_now(), PROGRAM);
}

TEST_F(Scope, KeepsErrnoAndTheCancelState) {
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    errno = 4242;
    {
        GPS_SCOPE();
        errno = EINTR;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        EXPECT_EQ(state, PTHREAD_CANCEL_DISABLE);
        wait_with();
    }
    EXPECT_EQ(errno, 4242);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
}

// A compiler puts scopes of one frame where it likes.
TEST_F(Scope, OneInAnotherWaitsWithTheProgramsMask) {
    struct gps_scope scopes[3];
    for (const auto &order : {std::vector<int>{0, 1, 2}, std::vector<int>{2, 1, 0}}) {
        for (const int i : order) {
            gps_scope_begin(&scopes[i]);
            EXPECT_EQ(wait_with(), PROGRAM);
        }
        for (auto i = order.rbegin(); i != order.rend(); ++i) {
            EXPECT_EQ(wait_with(), PROGRAM);
            gps_scope_end(&scopes[*i]);
        }
        EXPECT_EQ(bits_now(), PROGRAM);
    }
}

TEST_F(Scope, WhereSomeSignalsCannotBeBlockedWaitsWithTheProgramsMask) {
    unblockable = mask_of({SIGRTMAX, SIGRTMAX - 1});
    struct gps_scope outer, inner;
    gps_scope_begin(&outer);
    gps_scope_begin(&inner);
    EXPECT_EQ(wait_with(), PROGRAM);
    gps_scope_end(&inner);
    EXPECT_EQ(wait_with(), PROGRAM);
    gps_scope_end(&outer);
}

TEST_F(Scope, OfAProgramThatBlocksAllWaitsWithAllBlocked) {
    set_mask(~UINT64_C(0));
    const uint64_t all = bits_now();
    struct gps_scope outer, inner;
    gps_scope_begin(&outer);
    EXPECT_EQ(wait_with(), all);
    gps_scope_begin(&inner);
    EXPECT_EQ(wait_with(), all);
    gps_scope_end(&inner);
    EXPECT_EQ(wait_with(), all);
    gps_scope_end(&outer);
    EXPECT_EQ(bits_now(), all);
    set_mask(PROGRAM);
}

// The next scope is the program's outermost, however deep it lies, and whatever mask the program
// has got meanwhile.
TEST_F(Scope, ThatWasJumpedOutOfDoesNoHarm) {
    if (sigsetjmp(landing, 1) == 0)
        mask_of_a_wait(During::JUMP);
    EXPECT_EQ(bits_now(), PROGRAM);
    const uint64_t masks[] = {PROGRAM | mask_of({SIGUSR1}), 0, ~UINT64_C(0), PROGRAM};
    for (const uint64_t mask : masks) {
        set_mask(mask);
        const uint64_t program = bits_now();
        EXPECT_EQ(mask_of_a_deep_wait(), program);
        EXPECT_EQ(mask_of_a_wait(), program);
        EXPECT_EQ(bits_now(), program);
    }
}

// A fault inside it is handled at once, outside of a wait.
TEST_F(Scope, ThatTheHandlerOfAFaultLeftDoesNoHarm) {
    if (sigsetjmp(landing, 1) == 0) {
        struct gps_scope scope;
        gps_scope_begin(&scope);
        siglongjmp(landing, 1);
    }
    set_mask(~UINT64_C(0));
    const uint64_t all = bits_now();
    EXPECT_EQ(mask_of_a_deep_wait(), all);
    set_mask(PROGRAM | mask_of({SIGUSR1}));
    EXPECT_EQ(mask_of_a_deep_wait(), PROGRAM | mask_of({SIGUSR1}));
    set_mask(PROGRAM);
    EXPECT_EQ(mask_of_a_deep_wait(), PROGRAM);
}

// Such a handler may let signals in and return, as a crash reporter does that goes on.
TEST_F(Scope, ThatTheHandlerOfAFaultInterruptsKeepsTheProgramsMask) {
    const auto usual_handler = signal(SIGFPE, [](int) {
        set_mask(PROGRAM);
        EXPECT_EQ(mask_of_a_wait(), PROGRAM);
    });
    struct gps_scope scope;
    gps_scope_begin(&scope);
    const uint64_t inside = bits_now();
    raise(SIGFPE);
    EXPECT_EQ(bits_now(), inside);
    EXPECT_EQ(wait_with(), PROGRAM);
    gps_scope_end(&scope);
    signal(SIGFPE, usual_handler);
}

// A handler that runs in a wait opens a scope of its own, on its own stack or on another one.
struct Handlers : Scope {
    Handlers() {
        struct sigaction action = {};
        action.sa_handler = [](int) { handled = mask_of_a_wait(); };
        action.sa_flags = SA_ONSTACK;
        sigaction(SIGUSR1, &action, &other);
    }
    ~Handlers() override {
        sigaction(SIGUSR1, &other, nullptr);
    }
    static __attribute__((noinline)) void run_in_a_wait(char *alternate = nullptr) {
        const stack_t stack = {alternate, alternate ? 0 : SS_DISABLE, STACK};
        stack_t old;
        sigaltstack(&stack, &old);
        mask_of_a_handler();
        sigaltstack(&old, nullptr);
    }
    static void mask_of_a_handler() {
        GPS_SCOPE();
        const uint64_t inside = bits_now();
        EXPECT_EQ(wait_with(During::RAISE), PROGRAM);
        EXPECT_EQ(handled, PROGRAM | mask_of({SIGUSR1}));
        EXPECT_EQ(bits_now(), inside);
        EXPECT_EQ(wait_with(), PROGRAM) << "the handler's scope has ended";
    }
    static constexpr size_t STACK = 64 << 10;
    static inline uint64_t handled;
    struct sigaction other;
};

TEST_F(Handlers, WaitWithTheirOwnMask) {
    run_in_a_wait();
}

TEST_F(Handlers, OnAStackBelowWaitWithTheirOwnMask) {
    std::vector<char> below(STACK);
    run_in_a_wait(below.data());
}

TEST_F(Handlers, OnAStackAboveWaitWithTheirOwnMask) {
    char above[STACK];
    run_in_a_wait(above);
}

} // namespace
