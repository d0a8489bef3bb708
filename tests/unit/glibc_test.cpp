// glibc_test.cpp - what stands for functions that glibc 2.28 has not says and does what they do.
#include "patience.hpp"

extern "C" {
#include "threads/thread.h"
#include "util/processor.h"
#include "util/text.h"
}

namespace {

TEST(ErrorText, AsTheLibrarySaysIt) {
    for (int error : {ENOENT, EACCES, ENOSPC, EROFS, EMFILE, ELOOP, EDQUOT, ESTALE, EPERM})
        EXPECT_STREQ(gps_error_text(error), strerrordesc_np(error)) << error;
}

TEST(ErrorText, OfEveryNumberIsATextAndNeverAnothersText) {
    for (int error = -2; error < 300; error++) {
        const char *known = strerrordesc_np(error), *text = gps_error_text(error);
        EXPECT_TRUE(strcmp(text, "unknown error") == 0 || strcmp(text, known) == 0) << error;
    }
}

#ifdef __x86_64__
TEST(Processor, HasWhatTheCompilerSeesToo) {
    EXPECT_EQ(gps_processor_has_avx2(), __builtin_cpu_supports("avx2") != 0);
}
#endif

using wait_fn = int(pthread_cond_t *, pthread_mutex_t *, const timespec *);

void expect_waits(wait_fn *wait, int milliseconds) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    timespec before = {}, until = {}, after = {};
    clock_gettime(CLOCK_MONOTONIC, &before);
    const long end = before.tv_sec * 1000000000 + before.tv_nsec + milliseconds * 1000000L;
    until = {end / 1000000000, end % 1000000000};
    pthread_mutex_lock(&lock);
    EXPECT_EQ(wait(&condition, &lock, &until), ETIMEDOUT);
    pthread_mutex_unlock(&lock);
    clock_gettime(CLOCK_MONOTONIC, &after);
    const double waited = static_cast<double>(after.tv_sec - before.tv_sec) * 1e3 +
                          static_cast<double>(after.tv_nsec - before.tv_nsec) / 1e6;
    EXPECT_GE(waited, milliseconds - 5);
    EXPECT_LT(waited, milliseconds + patient(5000));
}

TEST(ThreadWait, EndsAtItsTimeByEitherClock) {
    for (int milliseconds : {0, 30, 1100}) {
        expect_waits(gps_thread_wait, milliseconds);
        expect_waits(gps_thread_wait_by_wall_clock, milliseconds);
    }
}

TEST(ThreadWait, ATimeThatHasPassed) {
    expect_waits(gps_thread_wait, -1500);
    expect_waits(gps_thread_wait_by_wall_clock, -1500);
}

} // namespace
