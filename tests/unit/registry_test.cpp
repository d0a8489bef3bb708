/* registry_test.cpp - what is allocated, imported, created: exact, under threads, and when large.
 */

extern "C" {
#include "driver/driver_ops.h"
#include "process/references.h"
#include "registry/freed_history.h"
#include "registry/record_reservation.h"
#include "registry/registry.h"
#include "util/forgotten.h"

void *gps_table_allocate(size_t size); // hash_table.h is no C++
}

namespace {

struct Registry : testing::Test {
    void SetUp() override {
        gps_forget_all();
    }
    void TearDown() override {
        gps_forget_all();
    }
};

gps_alloc allocation(uint64_t pointer, uint64_t context = 1, uint64_t size = 4096) {
    gps_alloc alloc = {};
    alloc.pointer = pointer;
    alloc.size = size;
    alloc.context = context;
    alloc.era = gps_registry_era();
    return alloc;
}

void add(uint64_t pointer, uint64_t context = 1, uint64_t size = 4096) {
    const gps_alloc alloc = allocation(pointer, context, size);
    gps_registry_add(&alloc);
}

bool has(uint64_t pointer) {
    gps_alloc alloc;
    return gps_registry_find(pointer, &alloc);
}

bool take(uint64_t pointer) {
    gps_alloc alloc;
    return gps_registry_take(pointer, &alloc);
}

/* --- allocations --- */

TEST_F(Registry, TheNewerAllocationAtAnAddressReplacesTheOlder) {
    add(0x1000, 1, 10);
    add(0x1000, 1, 20);
    gps_alloc alloc;
    ASSERT_TRUE(gps_registry_take(0x1000, &alloc));
    EXPECT_EQ(alloc.size, 20u);
    EXPECT_FALSE(has(0x1000));
}

TEST_F(Registry, AnAllocationGetsOneRegion) {
    gps_export one = {}, two = {};
    EXPECT_FALSE(gps_registry_attach(0x1000, &one));
    add(0x1000);
    EXPECT_TRUE(gps_registry_attach(0x1000, &one));
    EXPECT_FALSE(gps_registry_attach(0x1000, &two));
    gps_alloc alloc;
    ASSERT_TRUE(gps_registry_take(0x1000, &alloc));
    EXPECT_EQ(alloc.kind, GPS_ALLOC_EXPORTED);
    EXPECT_EQ(alloc.region, &one);
    EXPECT_FALSE(gps_registry_attach(0x1000, &two));
}

void collect_region(void *arg, gps_alloc *alloc) {
    static_cast<std::set<gps_export *> *>(arg)->insert(alloc->region);
}

TEST_F(Registry, ARegionAtAnAddressThatIsAllocatedAgainIsGivenBack) {
    gps_export region = {};
    const gps_alloc again = allocation(0x1000);
    EXPECT_EQ(gps_registry_add(&again), nullptr);
    EXPECT_EQ(gps_registry_add(&again), nullptr);
    ASSERT_TRUE(gps_registry_attach(0x1000, &region));
    EXPECT_EQ(gps_registry_add(&again), &region);
    EXPECT_EQ(gps_registry_add(&again), nullptr);
}

/* Before it is looked up, it is exported only if it was known to be. */
bool is_exported(uint64_t pointer) {
    gps_alloc alloc = {};
    const bool known = gps_registry_is_exported(pointer);
    const bool exported = gps_registry_find(pointer, &alloc) && alloc.kind == GPS_ALLOC_EXPORTED;
    EXPECT_TRUE(!known || exported);
    EXPECT_EQ(gps_registry_is_exported(pointer), exported);
    return exported;
}

TEST_F(Registry, AnAddressIsNotExportedAnyMoreOnceItIsGone) {
    gps_export region = {};
    const gps_alloc again = allocation(0x1000);
    const auto share = [&] {
        add(0x1000);
        EXPECT_FALSE(is_exported(0x1000));
        ASSERT_TRUE(gps_registry_attach(0x1000, &region));
        EXPECT_TRUE(is_exported(0x1000));
    };
    EXPECT_FALSE(is_exported(0));
    share();
    EXPECT_TRUE(take(0x1000));
    EXPECT_FALSE(is_exported(0x1000));
    share();
    EXPECT_EQ(gps_registry_add(&again), &region);
    EXPECT_FALSE(is_exported(0x1000));
    ASSERT_TRUE(gps_registry_attach(0x1000, &region));
    EXPECT_TRUE(is_exported(0x1000));
    std::set<gps_export *> seen;
    gps_registry_take_exports(0, nullptr, collect_region, &seen);
    EXPECT_FALSE(is_exported(0x1000));
}

TEST_F(Registry, AllExportedAddressesAreKnown) {
    std::vector<gps_export> regions(1000);
    for (size_t i = 0; i < regions.size(); i++) {
        add(0x1000 * (i + 1));
        ASSERT_TRUE(gps_registry_attach(0x1000 * (i + 1), &regions[i]));
    }
    for (size_t i = 0; i < regions.size(); i++)
        EXPECT_TRUE(is_exported(0x1000 * (i + 1)));
    for (size_t i = 0; i < regions.size(); i++)
        EXPECT_TRUE(take(0x1000 * (i + 1)));
    for (size_t i = 0; i < regions.size(); i++)
        EXPECT_FALSE(is_exported(0x1000 * (i + 1)));
}

TEST_F(Registry, OnlyExportsThatAreWantedAreTaken) {
    gps_export region = {}, other = {};
    region.vmm = true;
    add(0x1000, 1);
    add(0x2000, 1);
    ASSERT_TRUE(gps_registry_attach(0x1000, &region));
    ASSERT_TRUE(gps_registry_attach(0x2000, &other));
    const auto wanted = [](const gps_export *one) { return one->vmm; };
    std::set<gps_export *> seen;
    gps_registry_take_exports(2, wanted, collect_region, &seen);
    EXPECT_TRUE(seen.empty());
    gps_registry_take_exports(1, wanted, collect_region, &seen);
    EXPECT_EQ(seen, std::set<gps_export *>{&region});
    EXPECT_FALSE(has(0x1000));
    EXPECT_TRUE(has(0x2000));
}

/* --- what is gone --- */

bool was_freed(uint64_t pointer) {
    gps_freed gone;
    return gps_freed_find(GPS_FREED_MEMORY, pointer, &gone);
}

TEST_F(Registry, WhatLayAroundAnAddressIsFoundIfItWasOneThing) {
    gps_freed gone;
    uint64_t base = 0;
    gps_freed_note(GPS_FREED_IMPORT, 0x10000, {1, 2, 0, 0x1000, 0, false});
    gps_freed_note(GPS_FREED_IMPORT, 0x20000, {3, 4, 0, 0x1000, 0, false});
    ASSERT_TRUE(gps_freed_around(GPS_FREED_IMPORT, 0x20fff, &base, &gone));
    EXPECT_EQ(base, 0x20000u);
    EXPECT_EQ(gone.born, 3u);
    EXPECT_FALSE(gps_freed_around(GPS_FREED_IMPORT, 0x21000, &base, &gone));
    EXPECT_FALSE(gps_freed_around(GPS_FREED_IMPORT, 0xffff, &base, &gone));
    EXPECT_FALSE(gps_freed_around(GPS_FREED_MEMORY, 0x20000, &base, &gone));
    gps_freed_note(GPS_FREED_IMPORT, 0x20800, {5, 6, 0, 0x1000, 0, false});
    EXPECT_FALSE(gps_freed_around(GPS_FREED_IMPORT, 0x20900, &base, &gone)) << "one or the other";
    EXPECT_TRUE(gps_freed_around(GPS_FREED_IMPORT, 0x20100, &base, &gone));
}

TEST_F(Registry, ThingsOfOneAddressAreGoneEachForItself) {
    gps_freed gone;
    gps_freed_note(GPS_FREED_IMPORT, 0x1000, {1, 0, 0, 0, -1, true});
    EXPECT_FALSE(was_freed(0x1000));
    EXPECT_FALSE(gps_freed_find(GPS_FREED_EVENT, 0x1000, &gone));
    ASSERT_TRUE(gps_freed_find(GPS_FREED_IMPORT, 0x1000, &gone));
    EXPECT_TRUE(gone.with_context);
    EXPECT_EQ(gone.born, 1u);
    EXPECT_EQ(gone.ended, 0u);
    gps_freed_forget(GPS_FREED_MEMORY, 0x1000);
    EXPECT_TRUE(gps_freed_find(GPS_FREED_IMPORT, 0x1000, &gone));
    gps_freed_forget(GPS_FREED_IMPORT, 0x1000);
    EXPECT_FALSE(gps_freed_find(GPS_FREED_IMPORT, 0x1000, &gone));
}

TEST_F(Registry, ManyFreedAddressesAreRemembered) {
    for (uint64_t i = 1; i <= 1000; i++)
        gps_freed_note(GPS_FREED_MEMORY, i << 21, {0, 0, 0, 0, -1, false});
    size_t known = 0;
    for (uint64_t i = 1; i <= 1000; i++)
        known += was_freed(i << 21);
    EXPECT_GT(known, 750u); /* of 4,096 places by hash */
    EXPECT_TRUE(was_freed(1000ull << 21));
}

/* --- contexts that go --- */

void collect_pointer(void *arg, gps_alloc *alloc) {
    static_cast<std::set<uint64_t> *>(arg)->insert(alloc->pointer);
}

TEST_F(Registry, APurgeTakesTheContextsAllocationsOfBefore) {
    add(0x1000, 1);
    add(0x2000, 2);
    add(0x3000, 1);
    const uint32_t era = gps_registry_begin_era();
    add(0x4000, 1); /* by another thread, in a new context at the same address */
    std::set<uint64_t> purged;
    gps_registry_purge(1, era, collect_pointer, &purged);
    EXPECT_EQ(purged, (std::set<uint64_t>{0x1000, 0x3000}));
    EXPECT_TRUE(has(0x2000));
    EXPECT_TRUE(has(0x4000));
    purged.clear();
    gps_registry_purge(1, gps_registry_begin_era(), collect_pointer, &purged);
    EXPECT_EQ(purged, std::set<uint64_t>{0x4000});
}

TEST_F(Registry, IsExactUnderThreads) {
    constexpr uint64_t threads = 8, rounds = 20000;
    std::vector<std::thread> running;
    std::atomic<unsigned> wrong{0};
    for (uint64_t t = 0; t < threads; t++)
        running.emplace_back([t, &wrong] {
            for (uint64_t i = 0; i < rounds; i++) {
                const uint64_t pointer = ((i % 512 + 1) * threads + t) << 9;
                add(pointer, 1, i);
                gps_alloc alloc;
                if (!gps_registry_find(pointer, &alloc) || alloc.size != i)
                    wrong++;
                if (!gps_registry_take(pointer, &alloc) || alloc.size != i)
                    wrong++;
            }
            for (uint64_t i = 0; i < 100; i++)
                add((UINT64_C(1) << 40) + ((i * threads + t) << 21));
        });
    for (auto &thread : running)
        thread.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(gps_registry_bytes(), threads * 100 << 21);
}

TEST_F(Registry, CountsWholeBlocks) {
    constexpr uint64_t block = 2u << 20;
    add(16 * block, 1, 4096);
    add(16 * block + 4096, 1, 1100 << 10);
    EXPECT_EQ(gps_registry_bytes(), block) << "two in one";
    add(17 * block, 1, 1100 << 10);
    EXPECT_EQ(gps_registry_bytes(), 2 * block);
    add(32 * block, 1, block + 1);
    EXPECT_EQ(gps_registry_bytes(), 4 * block);
    add(UINT64_C(1) << 60, 1, 4096);
    EXPECT_EQ(gps_registry_bytes(), 5 * block) << "beyond all addresses of a GPU";
}

/* --- threads, numbers --- */

TEST_F(Registry, OneOfManyThreadsTakesAndOneAttaches) {
    for (int round = 0; round < 500; round++) {
        std::atomic<unsigned> taken{0}, attached{0};
        gps_export regions[4] = {};
        add(0x1000);
        std::vector<std::thread> running;
        for (auto &region : regions)
            running.emplace_back([&] { attached += gps_registry_attach(0x1000, &region); });
        for (auto &thread : running)
            thread.join();
        running.clear();
        for (int i = 0; i < 4; i++)
            running.emplace_back([&] { taken += take(0x1000); });
        for (auto &thread : running)
            thread.join();
        ASSERT_EQ(taken, 1u);
        ASSERT_EQ(attached, 1u);
    }
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t many = 100000;
#else
constexpr uint64_t many = 1000000;
#endif

/* What it costs is tests/bench/allocations.c's to say. */
TEST_F(Registry, AMillionEntriesAreFoundAndTaken) {
    const uint64_t steps[] = {512, 2u << 20};
    for (uint64_t step : steps) {
        gps_forget_all();
        const auto pointer = [step](uint64_t i) { return 0x7f0000000000 + i * step; };
        for (uint64_t i = 0; i < many; i++)
            add(pointer(i));
        size_t found = 0, between = 0;
        for (uint64_t i = 0; i < many; i++) {
            found += has(pointer(i * 7919 % many)); /* all of them, far apart */
            between += has(pointer(i) + step / 2);
        }
        EXPECT_EQ(found, many);
        EXPECT_EQ(between, 0u);
        size_t taken = 0;
        for (uint64_t i = 0; i < many; i++)
            taken += take(pointer(i));
        EXPECT_EQ(taken, many);
    }
}

/* --- imports --- */

gps_id id_of(uint8_t seed) {
    gps_id id;
    memset(id.bytes, seed, sizeof(id.bytes));
    return id;
}

gps_import import_of(uint64_t pointer, uint8_t seed, uint64_t context = 1, unsigned slot = 5) {
    gps_import import = {};
    import.pointer = pointer;
    import.context = context;
    import.region = id_of(seed);
    import.slot = slot;
    import.via = GPS_VIA_PROGRAM;
    import.era = gps_registry_era();
    return import;
}

gps_previous previous; // of the last open

uint64_t open(uint64_t pointer, uint8_t seed, uint64_t context = 1, unsigned slot = 5) {
    gps_import import = import_of(pointer, seed, context, slot);
    gps_registry_open(&import, GPS_VIA_PROGRAM, &previous);
    return import.opens.open;
}

// The addresses of those of a context that were there before the era.
std::set<uint64_t> purge_imports(uint64_t context, uint32_t era) {
    std::set<uint64_t> purged;
    gps_import import;
    while (gps_registry_take_import_of(context, era, &import))
        purged.insert(import.pointer);
    return purged;
}

// The import that is open there may be cached.
void watch(uint64_t pointer, int record_file, int owner_file) {
    gps_import import;
    ASSERT_TRUE(gps_registry_import_at(pointer, &import));
    EXPECT_TRUE(gps_registry_watch(&import, record_file, owner_file));
}

// Takes the oldest that is cached in a context (0: that is to end): 0 if there is none.
uint64_t take_ending(uint64_t context) {
    gps_import import;
    return gps_registry_take_ending(context, &import) ? import.pointer : 0;
}

bool any_ending() {
    return gps_registry_any_ending(nullptr);
}

// Whether the last close of the program leaves it cached.
bool cache(uint64_t pointer) {
    gps_import import;
    return gps_registry_close(pointer, GPS_VIA_PROGRAM, true, &import) == GPS_CLOSE_CACHED;
}

TEST_F(Registry, WhatIsClosedBeforeItsFilesAreWatchedIsNotWatched) {
    gps_import import = import_of(0x1000, 1);
    EXPECT_FALSE(gps_registry_watch(&import, 7, 8));
    open(0x1000, 2); /* another one by now */
    EXPECT_FALSE(gps_registry_watch(&import, 7, 8));
    EXPECT_FALSE(cache(0x1000));
}

TEST_F(Registry, OnlyWatchedImportsOfTheProgramAreCached) {
    gps_import import, by_rule = import_of(0x2000, 2);
    open(0x1000, 1);
    EXPECT_FALSE(cache(0x1000));
    EXPECT_FALSE(gps_registry_caches(0x1000));
    open(0x1000, 1);
    watch(0x1000, 7, 8);
    open(0x1000, 1);
    EXPECT_FALSE(cache(0x1000)); /* it is open twice */
    ASSERT_TRUE(cache(0x1000));
    EXPECT_EQ(1u, gps_registry_cached().count);
    EXPECT_TRUE(gps_registry_caches(0x1000));
    EXPECT_FALSE(gps_registry_import_at(0x1000, &import));
    EXPECT_FALSE(gps_registry_take_import(&import));
    EXPECT_EQ(GPS_CLOSE_DENIED, gps_registry_close(0x1000, GPS_VIA_PROGRAM, true, &import));
    gps_registry_open(&by_rule, GPS_VIA_RULE, &previous);
    watch(0x2000, 9, 10);
    EXPECT_FALSE(cache(0x2000));
}

TEST_F(Registry, WhatIsOpenedWhileItsOldMappingEndsIsClosedForItself) {
    gps_import import;
    open(0x1000, 1);
    watch(0x1000, 7, 8);
    cache(0x1000);
    EXPECT_EQ(0x1000u, take_ending(1));
    open(0x1000, 1);
    gps_registry_ended(0x1000);
    EXPECT_EQ(GPS_CLOSE_ONE, gps_registry_close(0x1000, GPS_VIA_PROGRAM, false, &import));
    EXPECT_EQ(GPS_CLOSE_NONE, gps_registry_close(0x1000, GPS_VIA_PROGRAM, false, &import));
}

// Between the two its files may have changed, and nobody has seen it.
TEST_F(Registry, WhatTheDriverRefusedToCloseIsNotCached) {
    gps_import import;
    open(0x1000, 1);
    watch(0x1000, 7, 8);
    ASSERT_EQ(GPS_CLOSE_ONE, gps_registry_close(0x1000, GPS_VIA_PROGRAM, false, &import));
    gps_registry_outdate(7);
    gps_registry_unclose(&import, GPS_VIA_PROGRAM);
    EXPECT_EQ(GPS_CLOSE_ONE, gps_registry_close(0x1000, GPS_VIA_PROGRAM, true, &import));
}

TEST_F(Registry, WhatIsOpenedWhereADeadContextHadItIsAnotherImport) {
    for (const bool cached : {false, true}) {
        gps_import import = import_of(0x1000, 1, 2);
        open(0x1000, 1, 1, 5);
        open(0x1000, 1, 1, 5);
        EXPECT_FALSE(previous.over);
        gps_import left;
        gps_registry_close(0x1000, GPS_VIA_PROGRAM, false, &left);
        if (cached) {
            watch(0x1000, 7, 8);
            cache(0x1000);
        }
        EXPECT_EQ(GPS_OPEN_FIRST, gps_registry_open(&import, GPS_VIA_PROGRAM, &previous));
        EXPECT_TRUE(previous.over);
        EXPECT_FALSE(previous.extra);
        EXPECT_EQ(1u, previous.import.context);
        EXPECT_EQ(5u, previous.import.slot);
        EXPECT_EQ(1u, import.opens.open);
        EXPECT_EQ(0u, gps_registry_cached().count);
        gps_forget_all();
    }
}

TEST_F(Registry, AnotherRegionAtTheAddressOfAnOpenImportIsOneMoreOpenOfIt) {
    open(0x1000, 1, 1, 5);
    watch(0x1000, 7, 8);
    gps_import other = import_of(0x1000, 2, 1, 6), left;
    EXPECT_EQ(GPS_OPEN_COUNTED, gps_registry_open(&other, GPS_VIA_PROGRAM, &previous));
    EXPECT_FALSE(previous.over || previous.extra);
    for (uint64_t opens : {1u, 0u}) {
        ASSERT_EQ(GPS_CLOSE_ONE, gps_registry_close(0x1000, GPS_VIA_PROGRAM, false, &left));
        EXPECT_EQ(opens, left.opens.open);
        EXPECT_EQ(5u, left.slot);
    }
}

// As of an old handle, which opens what its exporter has there now. That is held by its own slot.
TEST_F(Registry, WhatNothingIsKnownOfIsTheMemoryThatIsOpenedThereNext) {
    gps_import known = import_of(0x1000, 2, 1, 6), left = {};
    known.size = 4096;
    open(0x1000, 1, 1, GPS_NO_SLOT);
    open(0x1000, 1, 1, GPS_NO_SLOT);
    EXPECT_EQ(GPS_OPEN_FIRST, gps_registry_open(&known, GPS_VIA_RULE, &previous));
    EXPECT_TRUE(previous.over && !previous.extra);
    const gps_id was = id_of(1);
    EXPECT_TRUE(gps_id_equal(&previous.import.region, &was));
    for (uint64_t opens : {2u, 1u}) {
        ASSERT_EQ(GPS_CLOSE_ONE, gps_registry_close(0x1000, GPS_VIA_PROGRAM, false, &left));
        EXPECT_EQ(opens, left.opens.open);
        EXPECT_EQ(6u, left.slot);
    }
    EXPECT_EQ(GPS_CLOSE_DENIED, gps_registry_close(0x1000, GPS_VIA_PROGRAM, false, &left));
    ASSERT_EQ(GPS_CLOSE_ONE, gps_registry_close(0x1000, GPS_VIA_RULE, false, &left));
    EXPECT_EQ(0u, left.opens.open);
}

// Another thread may have closed it meanwhile, and have something else open there.
TEST_F(Registry, OneMoreOpenIsCountedOnlyOfWhatIsOpenThereStill) {
    const gps_id region = id_of(1);
    gps_import left = {};
    EXPECT_FALSE(gps_registry_is_open_twice(&region, 1));
    open(0x1000, 1);
    EXPECT_FALSE(gps_registry_is_open_twice(&region, 1));
    EXPECT_FALSE(gps_registry_count_again(&region, 1, 0x1000));
    open(0x1000, 1);
    EXPECT_TRUE(gps_registry_is_open_twice(&region, 1));
    EXPECT_FALSE(gps_registry_count_again(&region, 1, 0x2000));
    EXPECT_TRUE(gps_registry_count_again(&region, 1, 0x1000));
    for (uint64_t opens : {2u, 1u, 0u}) {
        ASSERT_EQ(GPS_CLOSE_ONE, gps_registry_close(0x1000, GPS_VIA_PROGRAM, false, &left));
        EXPECT_EQ(opens, left.opens.open);
    }
    open(0x1000, 2);
    open(0x1000, 2);
    EXPECT_FALSE(gps_registry_count_again(&region, 1, 0x1000));
    EXPECT_FALSE(gps_registry_is_open_twice(&region, 1));
}

TEST_F(Registry, WhatTheDriverOpensThoughItIsCachedIsCountedOnceTooOften) {
    gps_import again = import_of(0x1000, 1);
    open(0x1000, 1);
    EXPECT_FALSE(previous.extra);
    watch(0x1000, 7, 8);
    cache(0x1000);
    EXPECT_EQ(GPS_OPEN_COUNTED, gps_registry_open(&again, GPS_VIA_PROGRAM, &previous));
    EXPECT_TRUE(previous.extra);
    EXPECT_FALSE(previous.over);
    EXPECT_EQ(1u, again.opens.open);
    EXPECT_FALSE(gps_registry_caches(0x1000));
}

TEST_F(Registry, OnlyStaleOnesAreWaitedForAndThoseOfOneRegion) {
    const gps_id first = id_of(1), third = id_of(3);
    for (uint8_t i = 1; i <= 3; i++) {
        open(0x1000u * i, i, i == 1 ? 2 : 1);
        watch(0x1000u * i, i, 10);
        cache(0x1000u * i);
    }
    EXPECT_FALSE(any_ending());
    ASSERT_TRUE(gps_registry_expire(1)); /* what is cached in other contexts */
    EXPECT_TRUE(any_ending());
    EXPECT_EQ(0x1000u, take_ending(0));
    EXPECT_TRUE(any_ending()); /* until the driver has closed it */
    EXPECT_EQ(0u, take_ending(0));
    gps_registry_ended(0x1000);
    EXPECT_FALSE(any_ending());
    EXPECT_FALSE(gps_registry_expire(1));
    EXPECT_EQ(0x2000u, take_ending(1)); /* it is not stale */
    EXPECT_FALSE(any_ending());
    gps_registry_ended(0x2000);
    EXPECT_EQ(0x3000u, take_ending(1));
    EXPECT_TRUE(gps_registry_any_ending(&third));
    EXPECT_FALSE(gps_registry_any_ending(&first));
}

// The thread that ends them must not enter a context that is destroyed.
TEST_F(Registry, APurgeTakesWhatIsEndingAndNotTaken) {
    for (uint8_t i = 1; i <= 2; i++) {
        open(0x1000u * i, i);
        watch(0x1000u * i, i, 10);
        cache(0x1000u * i);
    }
    gps_registry_expire(0);
    EXPECT_EQ(0x1000u, take_ending(0));
    EXPECT_EQ(purge_imports(1, gps_registry_begin_era()), std::set<uint64_t>{0x2000});
    gps_registry_ended(0x1000);
    EXPECT_FALSE(any_ending());
}

TEST_F(Registry, ASlotCanBeSetLater) {
    open(0x1000, 1, 1, GPS_NO_SLOT);
    gps_registry_set_slot(0x1000, 9);
    gps_registry_set_slot(0x2000, 9); /* closed meanwhile */
    gps_import import;
    ASSERT_EQ(GPS_CLOSE_ONE, gps_registry_close(0x1000, GPS_VIA_PROGRAM, false, &import));
    EXPECT_EQ(import.slot, 9u);
}

TEST_F(Registry, ASlotIsWrittenWhereItSaysSomethingElse) {
    uint64_t pointer;
    unsigned slot;
    gps_slot now = {};
    const gps_id region = id_of(1);
    open(0x1000, 1);
    watch(0x1000, 7, 8);
    EXPECT_FALSE(gps_registry_correct_slot(0x1000, &slot, &now));
    cache(0x1000);
    EXPECT_FALSE(gps_registry_correct_slot(0, &slot, &now)); /* of what is open */
    ASSERT_TRUE(gps_registry_correct_slot(0x1000, &slot, &now));
    EXPECT_EQ(uint32_t(GPS_SLOT_CACHED), now.state);
    EXPECT_EQ(0x1000u, now.address);
    EXPECT_EQ(5u, slot);
    EXPECT_FALSE(gps_registry_correct_slot(0x1000, &slot, &now));
    gps_registry_uncache(&region, 1, 0, &pointer);
    ASSERT_TRUE(gps_registry_correct_slot(0, &slot, &now));
    EXPECT_EQ(uint32_t(GPS_SLOT_OPEN), now.state);
    EXPECT_FALSE(gps_registry_correct_slot(0, &slot, &now));
    EXPECT_FALSE(gps_registry_correct_slot(0x1000, &slot, &now));
}

TEST_F(Registry, APurgeTakesTheContextsImportsOfBefore) {
    open(0x1000, 1, 1);
    open(0x1000, 1, 1);
    open(0x2000, 1, 2);
    const uint32_t era = gps_registry_begin_era();
    open(0x3000, 3, 1);
    EXPECT_EQ(purge_imports(1, era), std::set<uint64_t>{0x1000});
    gps_import import;
    EXPECT_FALSE(gps_registry_import_at(0x1000, &import));
    EXPECT_TRUE(gps_registry_import_at(0x2000, &import));
    EXPECT_TRUE(gps_registry_import_at(0x3000, &import));
}

TEST_F(Registry, ImportsAreExactUnderThreads) {
    std::vector<std::thread> running;
    std::atomic<int> firsts{0}, lasts{0};
    for (int t = 0; t < 8; t++)
        running.emplace_back([&] {
            for (int i = 0; i < 5000; i++) {
                gps_import import;
                firsts += open(0x1000, 1) == 1;
                gps_registry_close(0x1000, GPS_VIA_PROGRAM, false, &import);
                lasts += import.opens.open == 0;
            }
        });
    for (auto &thread : running)
        thread.join();
    gps_import import;
    EXPECT_FALSE(gps_registry_import_at(0x1000, &import));
    EXPECT_EQ(firsts, lasts);
}

/* --- tombstones --- */

gps_id numbered(unsigned number) {
    gps_id id = {};
    memcpy(id.bytes, &number, sizeof(number));
    return id;
}

// True: the oldest one had to go for it.
bool leave_tombstone(const gps_id *id, gps_id *oldest, unsigned limit = GPS_TOMBSTONES) {
    gps_record_reservation reservation;
    const bool full = gps_record_leave_tombstone(id, limit, &reservation);
    if (full) {
        *oldest = reservation.id;
        gps_record_release(&reservation);
    }
    return full;
}

bool take_tombstone(const gps_id *id) {
    gps_record_reservation reservation;
    const bool stood = gps_record_reserve_id(&reservation, id);
    gps_record_release(&reservation);
    return stood;
}

// And takes them away.
unsigned standing() {
    unsigned count = 0;
    gps_record_reservation reservation;
    for (unsigned place = 0; gps_record_reserve_tombstone(&place, &reservation); count++)
        gps_record_release(&reservation);
    return count;
}

TEST_F(Registry, ATombstoneThatWasTakenIsNoLongerReplaced) {
    gps_id oldest = {};
    const gps_id reused = numbered(1);
    EXPECT_FALSE(take_tombstone(&reused));
    EXPECT_FALSE(leave_tombstone(&reused, &oldest));
    EXPECT_TRUE(take_tombstone(&reused));
    EXPECT_FALSE(take_tombstone(&reused));
    EXPECT_EQ(standing(), 0u);
    for (unsigned i = 2; i < GPS_TOMBSTONES + 2; i++) {
        const gps_id id = numbered(i);
        EXPECT_FALSE(leave_tombstone(&id, &oldest)) << i;
    }
    const gps_id last = numbered(0), second = numbered(2);
    ASSERT_TRUE(leave_tombstone(&last, &oldest));
    EXPECT_TRUE(gps_id_equal(&oldest, &second));
}

TEST_F(Registry, TheOldestTombstonesGoWhenFewerMayStay) {
    gps_id oldest = {};
    for (unsigned i = 0; i < 10; i++) {
        const gps_id id = numbered(i);
        EXPECT_FALSE(leave_tombstone(&id, &oldest));
    }
    const gps_id last = numbered(10);
    unsigned gone = 0;
    for (const gps_id *id = &last; leave_tombstone(id, &oldest, 4); id = nullptr) {
        const gps_id expected = numbered(gone++);
        EXPECT_TRUE(gps_id_equal(&oldest, &expected));
    }
    EXPECT_EQ(gone, 7u);
    EXPECT_EQ(standing(), 4u);
}

// Ids with equal beginnings, which lie side by side in any hash table.
TEST_F(Registry, TombstonesAreToldApartByTheWholeId) {
    gps_id ids[3] = {}, oldest = {};
    for (unsigned char i = 0; i < 3; i++) {
        ids[i].bytes[GPS_ID_BYTES - 1] = i;
        EXPECT_FALSE(leave_tombstone(&ids[i], &oldest));
    }
    EXPECT_TRUE(take_tombstone(&ids[1]));
    EXPECT_FALSE(take_tombstone(&ids[1]));
    EXPECT_TRUE(take_tombstone(&ids[0]));
    EXPECT_TRUE(take_tombstone(&ids[2]));
}

// The program's call succeeds, and errno is the program's.
TEST_F(Registry, WithoutMemoryForATableErrnoIsKept) {
    errno = 4242;
    EXPECT_EQ(gps_table_allocate(size_t{1} << 62), nullptr);
    EXPECT_EQ(errno, 4242);
}

} // namespace
