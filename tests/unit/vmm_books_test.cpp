// vmm_books_test.cpp - the books of memory of cuMemCreate and of pools: what each order of calls,
// right and wrong, leaves in them, and how much of it counts.
extern "C" {
#include "process/references.h"
#include "registry/pool_books.h"
#include "registry/vmm_books.h"
#include "stack/trace.h"
#include "util/forgotten.h"
}

namespace {

constexpr uint64_t MiB = 1 << 20, BLOCK = 2 * MiB, BASE = UINT64_C(0x7f0000000000);

struct Books : testing::Test {
    void SetUp() override {
        gps_forget_all();
    }
    void TearDown() override {
        gps_forget_all();
    }
};

gps_vmm_memory made(uint64_t handle, uint64_t size = BLOCK, gps_vmm_origin origin = GPS_VMM_CREATED,
                    int device = 0) {
    gps_vmm_memory memory = {};
    memory.handle = handle;
    memory.size = size;
    memory.origin = origin;
    memory.device = device;
    return memory;
}

void create(uint64_t handle, uint64_t size = BLOCK, gps_vmm_origin origin = GPS_VMM_CREATED,
            int device = 0) {
    const gps_vmm_memory memory = made(handle, size, origin, device);
    gps_vmm_made(&memory);
}

// Whether the books had it.
bool release(uint64_t handle, bool succeeded = true) {
    gps_vmm_pending *pending = gps_vmm_release(handle, 0);
    gps_vmm_released(pending, succeeded);
    return pending != nullptr;
}

void map_at(uint64_t pointer, uint64_t size, uint64_t handle, bool succeeded = true) {
    gps_vmm_mapping mapping = {};
    mapping.pointer = pointer;
    mapping.size = size;
    gps_vmm_mapped(gps_vmm_map(handle), &mapping, succeeded);
}

bool unmap(uint64_t pointer, uint64_t size, bool succeeded = true) {
    gps_vmm_pending *pending = gps_vmm_unmap(pointer, size, false);
    gps_vmm_unmapped(pending, succeeded);
    return pending != nullptr;
}

uint64_t bytes(int device = 0) {
    return gps_vmm_bytes(device);
}

// "handle references mappings", or "none".
std::string told(uint64_t handle) {
    gps_vmm_memory memory;
    return gps_vmm_find(handle, &memory) ? std::to_string(memory.references) + " references " +
                                               std::to_string(memory.mappings) + " mappings"
                                         : "none";
}

// What is mapped around an address: the handle of its memory, or 0.
uint64_t at(uint64_t address) {
    gps_vmm_mapping mapping;
    gps_vmm_memory memory;
    if (!gps_vmm_mapping_from(address, &mapping, &memory) || mapping.pointer > address)
        return 0;
    return memory.handle;
}

/* --- orders of calls --- */

struct Order {
    const char *name, *calls; // create, retain, import, release, map, unmap; capitals fail
    const char *told;
    uint64_t bytes, mapped;
};
std::ostream &operator<<(std::ostream &out, const Order &order) {
    return out << order.name;
}

struct Orders : Books, testing::WithParamInterface<Order> {};

void call(char what) {
    switch (what) {
    case 'c':
        return create(7);
    case 't':
        return gps_vmm_retained(7);
    case 'i':
        return create(7, 0, GPS_VMM_IMPORTED);
    case 'r':
    case 'R':
        release(7, what == 'r');
        return;
    case 'm':
    case 'M':
        return map_at(BASE, BLOCK, 7, what == 'm');
    case '2':
        return map_at(BASE + BLOCK, BLOCK, 7);
    case 'u':
    case 'U':
        unmap(BASE, BLOCK, what == 'u');
        return;
    case 'a':
        unmap(BASE, 2 * BLOCK);
        return;
    }
}

TEST_P(Orders, LeaveInTheBooks) {
    for (const char *one = GetParam().calls; *one; one++)
        call(*one);
    EXPECT_EQ(told(7), GetParam().told);
    EXPECT_EQ(bytes(), GetParam().bytes);
    EXPECT_EQ(at(BASE + 4096), GetParam().mapped);
}

INSTANTIATE_TEST_SUITE_P(
    Calls, Orders,
    testing::Values(Order{"Created", "c", "1 references 0 mappings", BLOCK, 0},
                    Order{"Released", "cr", "none", 0, 0},
                    Order{"ReleasedTwice", "crr", "none", 0, 0},
                    Order{"ReleaseRefused", "cR", "1 references 0 mappings", BLOCK, 0},
                    Order{"RetainedAndReleased", "cmtr", "1 references 1 mappings", BLOCK, 7},
                    Order{"Mapped", "cm", "1 references 1 mappings", BLOCK, 7},
                    Order{"MapRefused", "cM", "1 references 0 mappings", BLOCK, 0},
                    Order{"ReleasedWhileMapped", "cmr", "none", BLOCK, 7},
                    Order{"ReleasedThenUnmapped", "cmru", "none", 0, 0},
                    Order{"UnmapOfTheLastRefused", "cmrU", "none", BLOCK, 7},
                    Order{"RetainedAfterItsRelease", "cmrt", "1 references 1 mappings", BLOCK, 7},
                    Order{"MappedTwice", "cm2", "1 references 2 mappings", BLOCK, 7},
                    Order{"TwoUnmappedAtOnce", "cm2a", "1 references 0 mappings", BLOCK, 0},
                    Order{"UnmapOfAHole", "cma", "1 references 0 mappings", BLOCK, 0},
                    Order{"UnmappedTwice", "cmuu", "1 references 0 mappings", BLOCK, 0},
                    Order{"MappedUnknown", "m", "none", 0, 0},
                    Order{"MappedAgainUnseen", "cmm", "1 references 1 mappings", BLOCK, 7},
                    Order{"Imported", "i", "1 references 0 mappings", 0, 0},
                    Order{"ImportedTwiceByOneHandle", "ii", "2 references 0 mappings", 0, 0},
                    Order{"ImportedAndMapped", "im", "1 references 1 mappings", 0, 7},
                    Order{"GivenAgainUnseen", "cc", "1 references 0 mappings", BLOCK, 0},
                    Order{"GivenAgainWhileMapped", "cmrc", "1 references 0 mappings", 2 * BLOCK,
                          7}),
    [](const auto &one) { return one.param.name; });

// As soon as the driver has returned, another thread can get the number.
TEST_F(Books, ANumberThatIsGivenDuringItsReleaseIsNotTouchedByItsEnd) {
    create(7);
    gps_vmm_pending *pending = gps_vmm_release(7, 0);
    create(7, 4 * BLOCK);
    gps_vmm_released(pending, true);
    EXPECT_EQ(told(7), "1 references 0 mappings");
    EXPECT_EQ(bytes(), 4 * BLOCK);
}

TEST_F(Books, ARefusedReleaseTakesNoNumberThatIsAnothers) {
    create(7);
    gps_vmm_pending *pending = gps_vmm_release(7, 0);
    create(7, 4 * BLOCK);
    gps_vmm_released(pending, false);
    EXPECT_EQ(told(7), "1 references 0 mappings");
    EXPECT_EQ(bytes(), 4 * BLOCK);
}

TEST_F(Books, AddressesThatAreMappedAgainDuringTheirUnmapStayMapped) {
    create(7);
    create(8);
    map_at(BASE, BLOCK, 7);
    gps_vmm_pending *pending = gps_vmm_unmap(BASE, BLOCK, false);
    map_at(BASE, BLOCK, 8);
    gps_vmm_unmapped(pending, true);
    EXPECT_EQ(at(BASE), 8u);
    EXPECT_EQ(told(7), "1 references 0 mappings");
}

// Another thread gives its last reference back while it is being mapped.
TEST_F(Books, MemoryThatIsReleasedWhileItIsMappedLives) {
    gps_vmm_mapping mapping = {};
    mapping.pointer = BASE;
    mapping.size = BLOCK;
    create(7);
    gps_vmm_pending *pending = gps_vmm_map(7);
    release(7);
    EXPECT_EQ(bytes(), 0u);
    gps_vmm_mapped(pending, &mapping, true);
    EXPECT_EQ(bytes(), BLOCK);
    EXPECT_EQ(at(BASE), 7u);
    unmap(BASE, BLOCK);
    EXPECT_EQ(bytes(), 0u);
}

TEST_F(Books, OnlyMemoryOfADeviceThatTheProgramMadeCounts) {
    create(1, BLOCK, GPS_VMM_CREATED, 0);
    create(2, 2 * BLOCK, GPS_VMM_CREATED, 3);
    create(3, 4 * BLOCK, GPS_VMM_CREATED, GPS_VMM_NO_DEVICE);
    create(4, 8 * BLOCK, GPS_VMM_CREATED, 1000);
    create(5, 16 * BLOCK, GPS_VMM_MULTICAST, 0);
    create(6, 0, GPS_VMM_IMPORTED, 0);
    map_at(BASE, BLOCK, 6);
    EXPECT_EQ(bytes(0), BLOCK);
    EXPECT_EQ(bytes(3), 2 * BLOCK);
    EXPECT_EQ(gps_vmm_changed(), 1u << 0 | 1u << 3);
    EXPECT_EQ(gps_vmm_changed(), 0u);
    release(2);
    EXPECT_EQ(gps_vmm_changed(), 1u << 3);
    EXPECT_EQ(bytes(3), 0u);
}

TEST_F(Books, ImportedMemoryGetsItsSizeFromItsMapping) {
    gps_vmm_memory memory;
    create(7, 0, GPS_VMM_IMPORTED, GPS_VMM_NO_DEVICE);
    map_at(BASE, 5 * BLOCK, 7);
    ASSERT_TRUE(gps_vmm_find(7, &memory));
    EXPECT_EQ(memory.size, 5 * BLOCK);
}

/* --- leaks --- */

TEST_F(Books, OnlyWhatWasMappedAndIsNotAnyMoreLeaks) {
    gps_vmm_memory leaks[4];
    for (uint64_t handle = 1; handle <= 6; handle++)
        create(handle);
    for (uint64_t handle = 2; handle <= 6; handle++)
        map_at(BASE + handle * BLOCK, BLOCK, handle);
    for (uint64_t handle = 3; handle <= 6; handle++)
        unmap(BASE + handle * BLOCK, BLOCK);
    release(4);
    gps_vmm_bound(5);
    map_at(BASE, BLOCK, 6);
    ASSERT_EQ(gps_vmm_take_unmapped(leaks, 4), 1u) << "1 was never mapped, 2 and 6 are";
    EXPECT_EQ(leaks[0].handle, 3u);
    EXPECT_EQ(gps_vmm_take_unmapped(leaks, 4), 0u);
}

/* --- reservations --- */

std::string reservation(uint64_t address) {
    uint64_t pointer, size;
    return gps_vmm_reservation(address, &pointer, &size)
               ? std::to_string((pointer - BASE) / BLOCK) + "+" + std::to_string(size / BLOCK)
               : "none";
}

bool unreserve(uint64_t pointer, uint64_t size, bool succeeded = true) {
    gps_vmm_pending *pending = gps_vmm_unreserve(pointer, size);
    gps_vmm_unreserved(pending, succeeded);
    return pending != nullptr;
}

TEST_F(Books, OnlyAWholeReservationIsGivenBack) {
    gps_vmm_reserved(BASE, 4 * BLOCK);
    EXPECT_FALSE(unreserve(BASE, BLOCK));
    EXPECT_FALSE(unreserve(BASE + BLOCK, 3 * BLOCK));
    EXPECT_TRUE(unreserve(BASE, 4 * BLOCK, false));
    EXPECT_EQ(reservation(BASE), "0+4") << "the driver has refused it";
    EXPECT_TRUE(unreserve(BASE, 4 * BLOCK));
    EXPECT_EQ(reservation(BASE), "none");
    EXPECT_FALSE(unreserve(BASE, 4 * BLOCK));
}

TEST_F(Books, ANewReservationReplacesThoseThatWereGivenBackUnseen) {
    gps_vmm_reserved(BASE, 2 * BLOCK);
    gps_vmm_reserved(BASE + 2 * BLOCK, 2 * BLOCK);
    gps_vmm_reserved(BASE + BLOCK, 2 * BLOCK);
    EXPECT_EQ(reservation(BASE), "none");
    EXPECT_EQ(reservation(BASE + BLOCK), "1+2");
    EXPECT_EQ(reservation(BASE + 3 * BLOCK), "none");
}

/* --- access --- */

std::string access_at(uint64_t address) {
    gps_vmm_mapping mapping;
    gps_vmm_memory memory;
    if (!gps_vmm_mapping_from(address, &mapping, &memory))
        return "none";
    return std::to_string(mapping.readable) + " " + std::to_string(mapping.writable);
}

TEST_F(Books, AccessIsEachMappingsOwn) {
    create(7);
    for (uint64_t i = 0; i < 3; i++)
        map_at(BASE + i * BLOCK, BLOCK, 7);
    gps_vmm_allowed(BASE, 2 * BLOCK, 0, true, true);
    gps_vmm_allowed(BASE + BLOCK, 2 * BLOCK, 1, true, false);
    EXPECT_EQ(access_at(BASE), "1 1");
    EXPECT_EQ(access_at(BASE + BLOCK), "3 1");
    EXPECT_EQ(access_at(BASE + 2 * BLOCK), "2 0");
    gps_vmm_allowed(BASE, BLOCK, 0, false, false);
    EXPECT_EQ(access_at(BASE), "0 0");
    unmap(BASE + BLOCK, BLOCK);
    map_at(BASE + BLOCK, BLOCK, 7);
    EXPECT_EQ(access_at(BASE + BLOCK), "0 0") << "a new mapping has none";
}

TEST_F(Books, TheHostAndFarDevicesHaveOneBit) {
    create(7);
    map_at(BASE, BLOCK, 7);
    gps_vmm_allowed(BASE, BLOCK, 1000, true, false);
    gps_vmm_allowed(BASE, BLOCK, GPS_VMM_HOST, true, true);
    EXPECT_EQ(access_at(BASE), "9223372036854775808 9223372036854775808");
}

/* --- arrays, multicast, descriptors --- */

void describe(int number, uint64_t handle, gps_vmm_way way, uint32_t trace) {
    gps_vmm_descriptor descriptor = {};
    descriptor.way = way;
    descriptor.trace = trace;
    gps_vmm_described(number, handle, &descriptor);
}

TEST_F(Books, WhatIsBoundStaysMarked) {
    gps_vmm_memory memory;
    create(7);
    create(8);
    map_at(BASE, BLOCK, 8);
    gps_vmm_bound(7);
    gps_vmm_bound_at(BASE + 5);
    gps_vmm_bound_at(BASE + BLOCK);
    for (const uint64_t handle : {7, 8}) {
        ASSERT_TRUE(gps_vmm_find(handle, &memory));
        EXPECT_TRUE(memory.bound);
    }
}

TEST_F(Books, ADescriptorIsOfTheMemoryThatItWasLastExportedFor) {
    gps_vmm_descriptor descriptor;
    gps_vmm_memory memory;
    create(7);
    create(8);
    describe(40, 7, GPS_VMM_EXPORTED_AS, 1);
    describe(40, 8, GPS_VMM_EXPORTED_AS, 2);
    ASSERT_TRUE(gps_vmm_descriptor_of(40, &descriptor));
    ASSERT_TRUE(gps_vmm_find(8, &memory));
    EXPECT_EQ(descriptor.serial, memory.serial);
    EXPECT_EQ(descriptor.trace, 2u);
    gps_vmm_consumed(40);
    gps_vmm_consumed(40);
    EXPECT_FALSE(gps_vmm_descriptor_of(40, &descriptor));
    describe(-1, 7, GPS_VMM_IMPORTED_FROM, 1);
    EXPECT_FALSE(gps_vmm_descriptor_of(-1, &descriptor));
}

TEST_F(Books, ADescriptorIsLeftWhenItsMemoryIsNeitherReferredToNorMapped) {
    gps_vmm_left left[4];
    create(7);
    describe(40, 7, GPS_VMM_EXPORTED_AS, 1);
    describe(41, 7, GPS_VMM_EXPORTED_AS, 2);
    describe(42, 0, GPS_VMM_EXPORTED_AS, 3); // of a pool
    map_at(BASE, BLOCK, 7);
    EXPECT_EQ(gps_vmm_take_left(left, 4), 0u);
    release(7);
    create(7); // its number, again
    describe(41, 7, GPS_VMM_EXPORTED_AS, 4);
    EXPECT_EQ(gps_vmm_take_left(left, 4), 0u) << "it is mapped";
    gps_vmm_unmapped(gps_vmm_unmap(BASE, BLOCK, false), true);
    ASSERT_EQ(gps_vmm_take_left(left, 4), 1u);
    EXPECT_EQ(left[0].number, 40);
    EXPECT_EQ(left[0].descriptor.trace, 1u);
    EXPECT_EQ(left[0].memory.size, BLOCK);
    EXPECT_EQ(gps_vmm_take_left(left, 4), 0u) << "it is taken";
    release(7);
    ASSERT_EQ(gps_vmm_take_left(left, 4), 1u);
    EXPECT_EQ(left[0].number, 41);
}

/* --- many --- */

// Against a model that is as simple as can be.
TEST_F(Books, RandomMapsAndUnmapsAreAsInAModel) {
    constexpr uint64_t PLACES = 64;
    std::mt19937 random(2);
    std::map<uint64_t, uint64_t> model; // place -> blocks
    create(7);
    for (int step = 0; step < 20000; step++) {
        const uint64_t place = random() % PLACES, size = 1 + random() % 4;
        if (random() % 2) {
            for (auto old = model.begin(); old != model.end();)
                old = old->first < place + size && place < old->first + old->second
                          ? model.erase(old)
                          : std::next(old);
            model[place] = size;
            map_at(BASE + place * BLOCK, size * BLOCK, 7);
        } else {
            const bool succeeded = random() % 4;
            bool cut = false, any = false;
            for (const auto &[from, blocks] : model) {
                const bool inside = place <= from && from + blocks <= place + size;
                any |= inside;
                cut |= !inside && from < place + size && place < from + blocks;
            }
            EXPECT_EQ(unmap(BASE + place * BLOCK, size * BLOCK, succeeded), any && !cut);
            for (uint64_t gone = place; !cut && succeeded && gone < place + size; gone++)
                model.erase(gone);
        }
        ASSERT_EQ(told(7), "1 references " + std::to_string(model.size()) + " mappings");
        const uint64_t asked = random() % PLACES;
        auto below = model.upper_bound(asked);
        const bool mapped = below != model.begin() && (--below)->first + below->second > asked;
        ASSERT_EQ(at(BASE + asked * BLOCK) != 0, mapped) << step;
    }
}

TEST_F(Books, ThreadsThatGetEachOthersNumbersLeaveNothing) {
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < 4; thread++)
        threads.emplace_back([thread] {
            for (uint64_t i = 0; i < 20000; i++) {
                const uint64_t handle = 1 + i % 3, place = BASE + (thread * 8 + i % 8) * BLOCK;
                create(handle);
                map_at(place, BLOCK, handle);
                release(handle, i % 5 != 0);
                unmap(place, BLOCK, i % 7 != 0);
                unmap(place, BLOCK);
            }
        });
    for (auto &thread : threads)
        thread.join();
    for (const uint64_t handle : {1, 2, 3})
        while (release(handle)) {
        }
    EXPECT_EQ(bytes(), 0u);
}

/* --- pools --- */

gps_pool pool_of(uint64_t handle) {
    gps_pool pool = {};
    pool.pool = handle;
    return pool;
}

void add_pool(uint64_t handle) {
    const gps_pool pool = pool_of(handle);
    gps_pool_add(&pool);
}

void add_pointer(uint64_t address, uint64_t pool, uint32_t imports = 0, uint64_t context = 1) {
    gps_pool_pointer pointer = {};
    pointer.pointer = address;
    pointer.pool = pool;
    pointer.imports = imports;
    pointer.context = context;
    gps_pool_pointer_add(&pointer);
}

// -1: not in the books.
int pointers(uint64_t handle) {
    gps_pool pool;
    return gps_pool_find(handle, &pool) ? (int)pool.pointers : -1;
}

TEST_F(Books, APointerIsKnownByWhatItWasExportedAs) {
    const gps_id one = {{1}}, other = {{2}};
    add_pool(5);
    add_pointer(0x1000, 5);
    add_pointer(0x2000, 5);
    EXPECT_FALSE(gps_pool_pointer_has(&one));
    gps_pool_pointer_exported(0x1000, &one, GPS_NO_TRACE);
    gps_pool_pointer_exported(0x2000, &one, GPS_NO_TRACE);
    EXPECT_TRUE(gps_pool_pointer_has(&one));
    EXPECT_FALSE(gps_pool_pointer_has(&other));
    gps_pool_pointer pointer;
    ASSERT_TRUE(gps_pool_pointer_take(0x1000, &pointer));
    EXPECT_TRUE(gps_pool_pointer_has(&one)) << "the other has equal data";
    ASSERT_TRUE(gps_pool_pointer_take(0x2000, &pointer));
    EXPECT_FALSE(gps_pool_pointer_has(&one));
}

TEST_F(Books, OnlyAnImportedPointerHasASlotAndOnlyOne) {
    const gps_id id = {{1}};
    gps_pool_pointer pointer = {};
    add_pool(5);
    add_pointer(0x1000, 5);
    EXPECT_FALSE(gps_pool_pointer_set_slot(0x1000, &id, 3)) << "allocated here";
    EXPECT_FALSE(gps_pool_pointer_set_slot(0x2000, &id, 3)) << "freed meanwhile";
    pointer.pointer = 0x2000;
    pointer.pool = 5;
    pointer.imports = 1;
    pointer.slot = GPS_NO_SLOT;
    EXPECT_FALSE(gps_pool_pointer_add(&pointer));
    EXPECT_TRUE(gps_pool_pointer_add(&pointer)) << "imported again";
    EXPECT_TRUE(gps_pool_pointer_set_slot(0x2000, &id, 3));
    EXPECT_FALSE(gps_pool_pointer_set_slot(0x2000, &id, 4));
    ASSERT_TRUE(gps_pool_pointer_take(0x2000, &pointer));
    EXPECT_EQ(pointer.slot, 3u);
}

TEST_F(Books, PointersOutliveTheirPoolAndAreNotTheNextOnes) {
    gps_pool taken;
    gps_pool_pointer pointer;
    add_pool(5);
    add_pointer(0x1000, 5);
    ASSERT_TRUE(gps_pool_take(5, &taken));
    EXPECT_EQ(taken.pointers, 1u);
    add_pool(5);
    ASSERT_TRUE(gps_pool_pointer_take(0x1000, &pointer));
    EXPECT_EQ(pointers(5), 0);
}

TEST_F(Books, PointersEndWithTheirContext) {
    gps_pool_pointer pointer;
    add_pool(5);
    add_pointer(0x1000, 5, 0, 1);
    add_pointer(0x2000, 5, 0, 2);
    EXPECT_EQ(gps_pool_pointer_take_of(1, 1, &pointer, 1), 1u);
    EXPECT_EQ(pointer.pointer, 0x1000u);
    EXPECT_EQ(gps_pool_pointer_take_of(1, 1, &pointer, 1), 0u);
    EXPECT_EQ(pointers(5), 1);
    EXPECT_EQ(gps_pool_pointer_take_of(2, 0, &pointer, 1), 0u);
    EXPECT_EQ(pointers(5), 1) << "made after the end began";
    EXPECT_FALSE(gps_pool_pointer_take(0x1000, &pointer));
    EXPECT_TRUE(gps_pool_pointer_take(0x2000, &pointer));
}

} // namespace
