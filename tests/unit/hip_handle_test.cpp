// hip_handle_test.cpp - which bytes of HIP's handles mean something.
extern "C" {
#include "directory/record.h"
#include "hip/hip_handle.h"
}

namespace {

struct Handle {
    uint8_t bytes[GPS_HANDLE_BYTES];
    explicit Handle(uint8_t first = 1) {
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = static_cast<uint8_t>(first + i);
    }
    Handle plain() const {
        Handle made;
        gps_hip_plain_handle(bytes, made.bytes);
        return made;
    }
    Handle plain_event() const {
        Handle made;
        gps_hip_plain_event_handle(bytes, made.bytes);
        return made;
    }
    bool operator==(const Handle &other) const {
        return memcmp(bytes, other.bytes, sizeof(bytes)) == 0;
    }
};

TEST(HipHandle, OnlyTheMemoryItsSizeAndThePidMakeTheId) {
    const Handle handle;
    for (size_t i = 0; i < GPS_HANDLE_BYTES; i++) {
        Handle other = handle;
        other.bytes[i] ^= 0x80;
        const bool means_something = i < 40 || (i >= 48 && i < 52);
        EXPECT_EQ(other.plain() == handle.plain(), !means_something) << i;
    }
    EXPECT_TRUE(handle.plain().plain() == handle.plain());
}

TEST(HipHandle, TheOffsetIsInBytesOfItsOwn) {
    const Handle handle;
    for (size_t i = 0; i < GPS_HANDLE_BYTES; i++) {
        Handle other = handle;
        other.bytes[i] ^= 0x80;
        EXPECT_EQ(gps_hip_handle_offset(other.bytes) != gps_hip_handle_offset(handle.bytes),
                  i >= 40 && i < 48)
            << i;
    }
}

TEST(HipHandle, AnEventIsItsNameOrItsSignal) {
    Handle name, signal;
    memcpy(name.bytes, "/hip_event123456", 17);
    for (size_t i = 0; i < GPS_HANDLE_BYTES; i++) {
        Handle other_name = name, other_signal = signal;
        other_name.bytes[i] ^= 0x01;
        other_signal.bytes[i] ^= 0x80;
        if (i != 0 && i != 16) { // else it is another kind of handle, or a longer name
            EXPECT_EQ(other_name.plain_event() == name.plain_event(), i > 16) << i;
        }
        EXPECT_EQ(other_signal.plain_event() == signal.plain_event(), i >= 40) << i;
    }
}

TEST(HipHandle, APidIsReplacedWhereItIsTheOneThatIsMeant) {
    Handle handle;
    const uint32_t pid = 4711, another = 815;
    memcpy(handle.bytes + 48, &pid, sizeof(pid));
    Handle changed = handle;
    EXPECT_FALSE(gps_hip_handle_set_pid(changed.bytes, another, 1));
    EXPECT_TRUE(changed == handle);
    EXPECT_TRUE(gps_hip_handle_set_pid(changed.bytes, pid, another));
    memcpy(handle.bytes + 48, &another, sizeof(another));
    EXPECT_TRUE(changed == handle);
}

} // namespace
