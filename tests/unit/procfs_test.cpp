// What a process knows of itself, and what others know of it, when its main thread has ended by
// pthread_exit: the files of the whole process in /proc are those of that thread, and empty.
#include "store_support.h"

extern "C" {
#include "keeper/keeper_client.h"
#include "process/program.h"
#include "stack/stack.h"
#include "util/peek.h"
}

namespace {

// The body's result, in a process that has no main thread any more.
int without_main_thread(const std::function<int()> &body) {
    Child child([&](Child &) {
        std::thread([&body] {
            while (access("/proc/self/exe", F_OK) == 0)
                usleep(1000);
            _exit(body());
        }).detach();
        syscall(SYS_exit, 0);
        return 0;
    });
    return child.reap();
}

TEST(WithoutMainThread, TheProgramHasItsNameAndArguments) {
    gps_program program;
    gps_program_self(&program);
    const std::string arguments = program.arguments;
    EXPECT_EQ(without_main_thread([&] {
                  gps_program_self(&program);
                  gps_owner owner = this_process();
                  return strcmp(program.executable, "unit") != 0 ||
                         arguments != program.arguments || strcmp(owner.command, "unit") != 0;
              }),
              0);
}

TEST(WithoutMainThread, FramesHaveTheirModule) {
    gps_stack_start();
    gps_frame frame;
    gps_stack_frame(reinterpret_cast<uintptr_t>(&without_main_thread), &frame);
    const std::string module = frame.module;
    EXPECT_NE(module, "");
    EXPECT_EQ(without_main_thread([&] {
                  gps_stack_start();
                  gps_stack_frame(reinterpret_cast<uintptr_t>(&without_main_thread), &frame);
                  return module != frame.module;
              }),
              0);
}

TEST(WithoutMainThread, TheKeeperIsFoundBesideTheProgram) {
    char path[PATH_MAX];
    ASSERT_EQ(gps_spawn_program(nullptr, path, sizeof(path)), 0);
    EXPECT_EQ(without_main_thread([&] { return -gps_spawn_program(nullptr, path, sizeof(path)); }),
              0);
}

TEST(WithoutMainThread, MemoryIsPeekedAt) {
    EXPECT_EQ(without_main_thread([] {
                  const int there = 5;
                  int copy = 0;
                  return !gps_peek(reinterpret_cast<uintptr_t>(&there), &copy, sizeof(copy)) ||
                         copy != there || gps_peek(16, &copy, sizeof(copy));
              }),
              0);
}

class PeersWithoutMainThread : public StoreTest {};

// A process there counts its start from another boot.
Child in_another_time_namespace(const std::function<int(Child &)> &body) {
    return Child([=](Child &outer) {
        if (unshare(CLONE_NEWTIME) != 0)
            return 77;
        std::ofstream("/proc/self/timens_offsets") << "boottime 1000 0\n";
        const pid_t inner = fork();
        if (inner == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(body(outer));
        }
        int status;
        waitpid(inner, &status, 0);
        return WEXITSTATUS(status);
    });
}

TEST_F(PeersWithoutMainThread, NobodyInAnotherTimeNamespaceIsTakenForDead) {
    gps_owner other;
    Child child = in_another_time_namespace([&](Child &outer) {
        gps_lease lease;
        gps_owner me = this_process();
        if (gps_lease_take(&store, &me, nullptr, &lease) != 0)
            return 90;
        outer.send(me);
        outer.await();
        return 0;
    });
    if (!child.receive(other)) {
        ASSERT_EQ(child.reap(), 77);
        GTEST_SKIP() << "this user may not make time namespaces";
    }
    EXPECT_EQ(gps_lease_probe(&store, &other), GPS_ALIVE);
    EXPECT_EQ(without_main_thread([&] { return gps_lease_probe(&store, &other); }), GPS_ALIVE);
}

} // namespace
