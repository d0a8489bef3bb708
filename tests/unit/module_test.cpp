// module_test.cpp - which loaded object holds an address, as the linker says too.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <string>

extern "C" {
#include "stack/module.h"
}

namespace {

void expect_found(const void *address, bool expected) {
    gps_module module = {};
    Dl_info info = {};
    EXPECT_EQ(gps_module_of(address, &module), expected);
    EXPECT_EQ(dladdr(address, &info) != 0, expected);
    EXPECT_EQ(module.start, info.dli_fbase);
}

TEST(ModuleOf, TheProgramAndWhatItIsLinkedWith) {
    static int variable;
    expect_found(reinterpret_cast<void *>(&expect_found), true);
    expect_found(&variable, true);
    expect_found(reinterpret_cast<void *>(&puts), true);
    expect_found(stdout, true);
    expect_found(dlsym(RTLD_DEFAULT, "_ZNSt8ios_base4InitC1Ev"), true);
}

TEST(ModuleOf, TheKernelsObject) {
    const auto *start = reinterpret_cast<const char *>(getauxval(AT_SYSINFO_EHDR));
    if (!start)
        GTEST_SKIP() << "this machine has none";
    expect_found(start, true);
    expect_found(start + 100, true);
}

TEST(ModuleOf, CodeMadeByTheProgramIsInNone) {
    void *code = mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int local = 0;
    expect_found(static_cast<char *>(code) + 4096, false);
    expect_found(&local, false);
    expect_found(nullptr, false);
    munmap(code, 8192);
}

TEST(ModuleOf, ALibraryThatIsLoadedLaterAndItsEdges) {
    void *library = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);
    link_map *map = nullptr;
    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map))
        GTEST_SKIP() << "no library to load";
    gps_module module = {};
    ASSERT_TRUE(gps_module_of(map->l_ld, &module));
    expect_found(map->l_ld, true);
    expect_found(module.start, true);
    const auto *last = static_cast<const char *>(module.start);
    while (gps_module_of(last, &module) && module.base == map->l_addr)
        last++;
    expect_found(last - 1, true);
    expect_found(last, gps_module_of(last, &module));
    dlclose(library);
}

} // namespace
