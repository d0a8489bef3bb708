// lock_test.cpp - what may not happen while a lock is held ends a test.
extern "C" {
#include "directory/file.h"
#include "driver/scope.h"
#include "util/lock.h"
#include "util/program_signals.h"
}

namespace {

GPS_LOCK(GPS_RANK_SWAP) swaps;
GPS_LOCK(GPS_RANK_SLOTS) slots;
GPS_LOCK(GPS_RANK_TRACES) traces;

struct Locks : testing::Test {
    void SetUp() override {
        setenv("GPUSHARE_ASSERTIONS", "/dev/null", 1);
    }
    void TearDown() override {
        if (before.empty())
            unsetenv("GPUSHARE_ASSERTIONS");
        else
            setenv("GPUSHARE_ASSERTIONS", before.c_str(), 1);
    }
    const std::string before = getenv("GPUSHARE_ASSERTIONS") ? getenv("GPUSHARE_ASSERTIONS") : "";
};

TEST_F(Locks, AreTakenInTheOrderOfTheirRanks) {
    gps_lock_take(&swaps);
    gps_lock_take(&slots);
    gps_lock_take(&traces);
    EXPECT_EQ(gps_locks_held, 1u << GPS_RANK_SWAP | 1u << GPS_RANK_SLOTS | 1u << GPS_RANK_TRACES);
    gps_lock_give(&slots);
    gps_lock_give(&swaps);
    gps_lock_give(&traces);
    EXPECT_EQ(gps_locks_held, 0u);
}

TEST_F(Locks, OutOfOrderEndATest) {
    gps_lock_take(&slots);
    EXPECT_DEATH(gps_lock_take(&swaps), "assertion failed: lock: SLOTS -> SWAP");
    EXPECT_DEATH(gps_lock_take(&slots), "assertion failed: lock: SLOTS -> SLOTS");
    gps_lock_give(&slots);
}

TEST_F(Locks, AreHeldAcrossADriverCallOnlyByTheirRank) {
    gps_lock_take(&swaps);
    gps_lock_check(GPS_ACROSS_DRIVER, "a call of the driver");
    gps_lock_give(&swaps);
    gps_lock_take(&slots);
    EXPECT_DEATH(gps_lock_check(GPS_ACROSS_DRIVER, "a call of the driver"),
                 "assertion failed: lock: SLOTS -> a call of the driver");
    gps_lock_give(&slots);
}

TEST_F(Locks, AreHeldAcrossAFileOnlyByTheirRank) {
    gps_lock_take(&slots);
    close(gps_file_open_any(AT_FDCWD, "/dev/null", O_RDONLY));
    gps_lock_give(&slots);
    gps_lock_take(&traces);
    EXPECT_DEATH(gps_file_open_any(AT_FDCWD, "/dev/null", O_RDONLY),
                 "assertion failed: lock: TRACES -> the use of a file");
    gps_lock_give(&traces);
}

TEST_F(Locks, AreNeverHeldWhileTheProgramsSignalsAreLetIn) {
    sigset_t all, program;
    sigfillset(&all);
    gps_lock_take(&swaps);
    pthread_sigmask(SIG_SETMASK, &all, &program); /* as in a thread of ours */
    {
        GPS_SCOPE();
        gps_program_signals_poll(nullptr, 0);
    }
    pthread_sigmask(SIG_SETMASK, &program, nullptr);
    GPS_SCOPE();
    EXPECT_DEATH(gps_program_signals_poll(nullptr, 0),
                 "assertion failed: lock: SWAP -> signals let in");
    gps_lock_give(&swaps);
    gps_program_signals_poll(nullptr, 0);
}

} // namespace
