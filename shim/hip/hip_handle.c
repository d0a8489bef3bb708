#include "hip_handle.h"

#include <string.h>

enum {
    OFFSET_AT = 40, /* behind ROCr's 32 bytes and the size */
    PID_AT = 48,
    SIGNAL_END = 40,
};

void gps_hip_plain_handle(const uint8_t handle[GPS_HANDLE_BYTES], uint8_t plain[GPS_HANDLE_BYTES]) {
    memset(plain, 0, GPS_HANDLE_BYTES);
    memcpy(plain, handle, OFFSET_AT);
    memcpy(plain + PID_AT, handle + PID_AT, sizeof(uint32_t));
}

uint64_t gps_hip_handle_offset(const uint8_t handle[GPS_HANDLE_BYTES]) {
    uint64_t offset;
    memcpy(&offset, handle + OFFSET_AT, sizeof(offset));
    return offset;
}

void gps_hip_plain_event_handle(const uint8_t handle[GPS_HANDLE_BYTES],
                                uint8_t plain[GPS_HANDLE_BYTES]) {
    const size_t used =
        handle[0] == '/' ? strnlen((const char *)handle, GPS_HANDLE_BYTES) : SIGNAL_END;
    memset(plain, 0, GPS_HANDLE_BYTES);
    memcpy(plain, handle, used);
}

bool gps_hip_handle_set_pid(uint8_t handle[GPS_HANDLE_BYTES], uint32_t pid, uint32_t instead) {
    if (memcmp(handle + PID_AT, &pid, sizeof(pid)) != 0)
        return false;
    memcpy(handle + PID_AT, &instead, sizeof(instead));
    return true;
}
