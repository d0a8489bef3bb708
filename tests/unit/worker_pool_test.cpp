// worker_pool_test.cpp - threads that help with a call: nothing done twice or left, and none that
// stay.
extern "C" {
#include "digest/worker_pool.h"
}
#include "skip.hpp"

namespace {

struct Job {
    std::vector<std::atomic<int>> pieces;
    std::atomic<size_t> next{0}, helpers{0};
    explicit Job(size_t count) : pieces(count) {
    }

    static void work(void *arg) {
        auto *job = static_cast<Job *>(arg);
        job->helpers++;
        for (size_t i; (i = job->next++) < job->pieces.size();)
            job->pieces[i]++;
    }
    bool each_once() const {
        for (const auto &piece : pieces)
            if (piece != 1)
                return false;
        return true;
    }
};

bool done_by_a_crew(size_t pieces, size_t wanted) {
    Job job(pieces);
    gps_pool pool = {Job::work, &job, 0, 0, nullptr};
    gps_worker_pool_call(&pool, wanted);
    Job::work(&job);
    gps_worker_pool_join(&pool);
    return job.each_once() && job.helpers <= wanted + 1;
}

size_t threads() {
    size_t count = 0;
    for (const auto &task : std::filesystem::directory_iterator("/proc/self/task"))
        count += task.exists();
    return count;
}

// Until as many are at work as there are to be, however late a machine starts them.
struct Meeting {
    std::atomic<size_t> present{0};
    size_t expected;
    static void work(void *arg) {
        auto *meeting = static_cast<Meeting *>(arg);
        meeting->present++;
        while (meeting->present < meeting->expected)
            std::this_thread::yield();
    }
};

size_t cores() {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

TEST(Pool, DoesEachPieceOnce) {
    for (const size_t pieces : {0u, 1u, 7u, 1000u})
        for (const size_t wanted : {0u, 1u, 3u, 100u})
            EXPECT_TRUE(done_by_a_crew(pieces, wanted)) << pieces << " by " << wanted;
}

TEST(Pool, ManyCallersAtOnceGetTheirsDone) {
    std::atomic<size_t> failed{0};
    std::vector<std::thread> callers;
    for (int i = 0; i < 8; i++)
        callers.emplace_back([&] {
            for (int round = 0; round < 500; round++)
                failed += !done_by_a_crew(50, 4);
        });
    for (auto &caller : callers)
        caller.join();
    EXPECT_EQ(failed, 0u);
}

TEST(Pool, ComesWhenCalledAndAgainWhenItWaits) {
    SKIP_IF(cores() < 2, "there is one core");
    for (int round = 0; round < 3; round++) {
        Meeting meeting;
        meeting.expected = 2;
        gps_pool pool = {Meeting::work, &meeting, 0, 0, nullptr};
        gps_worker_pool_call(&pool, 1);
        Meeting::work(&meeting); // returns when the other one is there, too
        gps_worker_pool_join(&pool);
        EXPECT_EQ(meeting.present, 2u);
    }
}

TEST(Pool, EndsWhenNobodyCallsAnyMore) {
#ifdef __SANITIZE_THREAD__
    constexpr size_t ALONE = 2; // it has one of its own
#else
    constexpr size_t ALONE = 1;
#endif
    EXPECT_TRUE(done_by_a_crew(10, 3));
    for (int i = 0; i < 600 && threads() > ALONE; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_LE(threads(), ALONE);
    EXPECT_TRUE(done_by_a_crew(10, 3));
}

TEST(Pool, OneCoreWorksAlone) {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    Job job(100);
    gps_pool pool = {Job::work, &job, 0, 0, nullptr};
    gps_worker_pool_call(&pool, 7);
    EXPECT_EQ(pool.wanted, 0u);
    Job::work(&job);
    gps_worker_pool_join(&pool);
    EXPECT_TRUE(job.each_once());
    EXPECT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST(Pool, AForkedChildHasItsOwn) {
    EXPECT_TRUE(done_by_a_crew(100, 3)); // now some wait here, and do not there
    const pid_t child = fork();
    if (child == 0) {
        gps_worker_pool_reset();
        _exit(done_by_a_crew(100, 3) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

} // namespace
