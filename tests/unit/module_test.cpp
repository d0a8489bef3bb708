// module_test.cpp - which loaded object holds an address: the quick way and the one of old linkers
// say the same.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <string>

extern "C" {
#include "stack/module.h"
}

namespace {

void expect_same(const void *address, bool expected) {
    gps_module quick = {}, listed = {};
    EXPECT_EQ(gps_module_of(address, &quick), expected);
    EXPECT_EQ(gps_module_of_listed(address, &listed), expected);
    EXPECT_EQ(listed.base, quick.base);
    EXPECT_EQ(listed.dynamic, quick.dynamic);
    EXPECT_EQ(listed.start, quick.start);
    EXPECT_STREQ(listed.path, quick.path);
}

TEST(ModuleOf, TheProgramAndWhatItIsLinkedWith) {
    static int variable;
    expect_same(reinterpret_cast<void *>(&expect_same), true);
    expect_same(&variable, true);
    expect_same(reinterpret_cast<void *>(&puts), true);
    expect_same(stdout, true);
    expect_same(dlsym(RTLD_DEFAULT, "_ZNSt8ios_base4InitC1Ev"), true);
}

TEST(ModuleOf, TheKernelsObject) {
    const auto *start = reinterpret_cast<const char *>(getauxval(AT_SYSINFO_EHDR));
    if (!start)
        GTEST_SKIP() << "this machine has none";
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
    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map))
        GTEST_SKIP() << "no library to load";
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

} // namespace
