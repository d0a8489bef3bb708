// What libgcc's unwinder calls before its first walk, in several threads at once.
extern "C" {
#define __pthread_key_create key_create_of_unwinder // this program has its own ones
#define pthread_once         once_of_unwinder
#include "compat/unwinder.c"
#undef pthread_once
#undef __pthread_key_create
}

namespace {
pthread_once_t once = PTHREAD_ONCE_INIT;
std::atomic<int> begun, done;
std::atomic<bool> stay{true};

void fill() {
    if (begun++ == 0)
        while (stay)
            std::this_thread::yield();
    done++;
}
} // namespace

// Its table was half filled for a thread that came then, and the process aborted.
TEST(Unwinder, NoThreadGoesOnBeforeItsTableIsFilled) {
    std::thread first([] { EXPECT_EQ(once_of_unwinder(&once, fill), 0); });
    while (!begun)
        std::this_thread::yield();
    EXPECT_EQ(once_of_unwinder(&once, fill), 0);
    EXPECT_EQ(done, 1) << "the other thread is at it still";
    stay = false;
    first.join();
    EXPECT_EQ(done, 2);
    EXPECT_EQ(once_of_unwinder(&once, fill), 0);
    EXPECT_EQ(done, 2);
}
