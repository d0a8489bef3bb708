// module_test.cpp - which loaded object holds an address: the quick way and the one of old linkers
// say the same.
#include <sys/auxv.h>

extern "C" {
#include "stack/module_place.h"
#include "util/linker.h"
}
#include "skip.hpp"

namespace {

void expect_same(const void *address, bool expected) {
    gps_module quick = {};
    dl_find_object known = {}, listed = {};
    void *at = const_cast<void *>(address);
    EXPECT_EQ(gps_module_of(address, &quick), expected);
    EXPECT_EQ(gps_find_object_listed(at, &listed), expected ? 0 : -1);
    if (!expected || _dl_find_object(at, &known) != 0)
        return;
    EXPECT_EQ(listed.dlfo_link_map, known.dlfo_link_map);
    EXPECT_EQ(listed.dlfo_map_start, known.dlfo_map_start);
    EXPECT_EQ(listed.dlfo_eh_frame, known.dlfo_eh_frame);
    EXPECT_EQ(quick.start, known.dlfo_map_start);
    EXPECT_STREQ(quick.path, known.dlfo_link_map->l_name);
}

void expect_known_objects() {
    static int variable;
    expect_same(reinterpret_cast<void *>(&expect_same), true);
    expect_same(&variable, true);
    expect_same(reinterpret_cast<void *>(&puts), true);
    expect_same(stdout, true);
    expect_same(dlsym(RTLD_DEFAULT, "_ZNSt8ios_base4InitC1Ev"), true);
}

TEST(ModuleOf, TheProgramAndWhatItIsLinkedWith) {
    expect_known_objects();
}

TEST(ModuleOf, TheSameInAForkedChildUntilAnObjectComes) {
    gps_linker_start();
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        expect_known_objects();
        void *const library = dlopen("libutil.so.1", RTLD_NOW);
        expect_known_objects();
        expect_same(dlsym(library, "login_tty"), true);
        _exit(HasFailure());
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(ModuleOf, TheKernelsObject) {
    const auto *start = reinterpret_cast<const char *>(getauxval(AT_SYSINFO_EHDR));
    SKIP_IF(!start, "this machine has none");
    expect_same(start, true);
    expect_same(start + 100, true);
}

TEST(ModuleOf, CodeMadeByTheProgramIsInNone) {
    void *code = mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int local = 0;
    expect_same(static_cast<char *>(code) + 4096, false);
    expect_same(&local, false);
    expect_same(nullptr, false);
    munmap(code, 8192);
}

TEST(ModuleOf, ALibraryThatIsLoadedLaterAndItsEdges) {
    void *library = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);
    link_map *map = nullptr;
    SKIP_IF(!library || dlinfo(library, RTLD_DI_LINKMAP, &map), "no library to load");
    gps_module module = {};
    ASSERT_TRUE(gps_module_of(map->l_ld, &module));
    expect_same(map->l_ld, true);
    expect_same(module.start, true);
    const auto *last = static_cast<const char *>(module.start);
    while (gps_module_of(last, &module) && module.base == map->l_addr)
        last++;
    expect_same(last - 1, true);
    expect_same(last, gps_module_of(last, &module));
    dlclose(library);
}

TEST(ProcessSymbol, IsTheFirstDefinition) {
    EXPECT_EQ(gps_process_symbol("dlsym"), gps_libc_symbol("dlsym"));
    EXPECT_EQ(gps_process_symbol("pthread_create"), dlsym(RTLD_DEFAULT, "pthread_create"));
    EXPECT_EQ(gps_process_symbol("a_function_that_nobody_has"), nullptr);
    EXPECT_EQ(gps_libc_symbol("_ZNSt8ios_base4InitC1Ev"), nullptr);
}

} // namespace
