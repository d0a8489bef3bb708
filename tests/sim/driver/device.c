/* The visible devices and what they say of themselves; see device.h. */
#include "device.h"

#include "link.h"
#include "state.h"

#include <ctype.h>

static struct {
    uint32_t cards[SIM_MAX_DEVICES];
    int count;
    bool by_mps;
    uint32_t faults[SIM_MAX_DEVICES]; /* by card: so many there were before this process */
} visible;

CUuuid device_uuid_of_card(uint32_t card) {
    static const unsigned char base[16] = {0x5e, 0xed, 0x00, 0x00, 0x67, 0x70, 0x53, 0x68,
                                           0xa7, 0xe5, 0x51, 0x6d, 0x75, 0x1a, 0x70, 0x00};
    CUuuid uuid;
    memcpy(uuid.bytes, base, sizeof base);
    uuid.bytes[15] = (char)card;
    return uuid;
}

static void print_uuid(uint32_t card, char text[48]) {
    CUuuid uuid = device_uuid_of_card(card);
    char *end = text + sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++)
        end += sprintf(end, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                       (unsigned char)uuid.bytes[i]);
}

/* The card that one word of CUDA_VISIBLE_DEVICES means, or -1. A UUID may be cut short. */
static int find_card(const char *word, size_t length) {
    char text[48], *end;
    if (length && isdigit((unsigned char)*word)) {
        unsigned long ordinal = strtoul(word, &end, 10);
        return end == word + length && ordinal < link_devices() ? (int)ordinal : -1;
    }
    for (uint32_t card = 0; length > 4 && card < link_devices(); card++) {
        print_uuid(card, text);
        if (length <= strlen(text) && !strncasecmp(word, text, length))
            return (int)card;
    }
    return -1;
}

CUdevice device_of_card(uint32_t card) {
    for (int i = 0; i < visible.count; i++)
        if (visible.cards[i] == card)
            return i;
    return -1;
}

static void look_for_mps(void) {
    visible.by_mps = getenv("GPUSHARE_SIM_MPS");
    for (uint32_t card = 0; card < link_devices(); card++)
        visible.faults[card] = __atomic_load_n(link_faults(card), __ATOMIC_SEQ_CST);
}

void device_fault(uint32_t card) {
    if (visible.by_mps)
        __atomic_add_fetch(link_faults(card), 1, __ATOMIC_SEQ_CST);
}

bool device_has_faulted(uint32_t card) {
    return visible.by_mps &&
           __atomic_load_n(link_faults(card), __ATOMIC_SEQ_CST) != visible.faults[card];
}

CUresult device_discover(void) {
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    look_for_mps();
    visible.count = 0;
    if (!list) {
        for (uint32_t card = 0; card < link_devices(); card++)
            visible.cards[visible.count++] = card;
        return CUDA_SUCCESS;
    }
    while (*list && visible.count < SIM_MAX_DEVICES) {
        size_t length = strcspn(list, ",");
        int card = find_card(list, length);
        /* As the real one does: the list ends where it stops making sense; twice is none. */
        if (card < 0)
            break;
        if (device_of_card((uint32_t)card) >= 0) {
            visible.count = 0;
            break;
        }
        visible.cards[visible.count++] = (uint32_t)card;
        list += length + (list[length] == ',');
    }
    return visible.count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

int device_count(void) {
    return visible.count;
}

bool device_valid(CUdevice device) {
    return device >= 0 && device < visible.count;
}

uint32_t device_card(CUdevice device) {
    return visible.cards[device];
}

bool device_reaches(uint32_t card, uint32_t other) {
    const char *peers = getenv("GPUSHARE_SIM_PEERS");
    return card == other || !peers || strcmp(peers, "0");
}

bool device_visible_reaches(uint32_t card) {
    for (int i = 0; i < visible.count; i++)
        if (device_reaches(visible.cards[i], card))
            return true;
    return false;
}

static CUresult check(CUdevice device, const void *out) {
    TRY(state_check());
    REFUSE(!out, CUDA_ERROR_INVALID_VALUE);
    return device_valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

double CUDAAPI cuSimNewest(long a, long b, long c, long d, long e, long f, long g, double x,
                           double y) {
    const long numbers[] = {a, b, c, d, e, f, g};
    double sum = x - y;
    for (int i = 0; i < 7; i++)
        sum = sum * 10 + (double)numbers[i];
    return sum;
}

CUresult CUDAAPI cuDriverGetVersion(int *version) {
    REFUSE(!version, CUDA_ERROR_INVALID_VALUE);
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int *count) {
    TRY(state_check());
    REFUSE(!count, CUDA_ERROR_INVALID_VALUE);
    *count = visible.count;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
    TRY(check(ordinal, device));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char *name, int length, CUdevice device) {
    TRY(check(device, name));
    REFUSE(length <= 0, CUDA_ERROR_INVALID_VALUE);
    snprintf(name, (size_t)length, "Simulated GPU");
    return CUDA_SUCCESS;
}

CALL(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device), cuDeviceGetUuid_v2(uuid, device))

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    TRY(check(device, uuid));
    *uuid = device_uuid_of_card(device_card(device));
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem(unsigned int *bytes, CUdevice device) {
    TRY(check(device, bytes));
    *bytes = link_memory() > UINT32_MAX ? UINT32_MAX : (unsigned int)link_memory();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    TRY(check(device, bytes));
    *bytes = link_memory();
    return CUDA_SUCCESS;
}

/* Bus numbers as on a host with one card a bus, from 0x10 on. */
CUresult CUDAAPI cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
    TRY(check(device, id));
    REFUSE(length < 13, CUDA_ERROR_INVALID_VALUE);
    snprintf(id, (size_t)length, "0000:%02X:00.0", 0x10 + device_card(device));
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *device, const char *id) {
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    TRY(state_check());
    REFUSE(!device || !id, CUDA_ERROR_INVALID_VALUE);
    if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3 || domain || slot)
        return CUDA_ERROR_INVALID_DEVICE;
    for (int i = 0; i < visible.count; i++) {
        if (bus == 0x10 + visible.cards[i]) {
            *device = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    TRY(check(device, can));
    REFUSE(!device_valid(peer), CUDA_ERROR_INVALID_DEVICE);
    *can = device != peer && device_reaches(device_card(device), device_card(peer));
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    static const struct {
        CUdevice_attribute attribute;
        int value;
    } known[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 1}, /* also without a channel */
    };
    TRY(check(device, value));
    *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? (int)(0x10 + device_card(device)) : 0;
    if (attribute == CU_DEVICE_ATTRIBUTE_MPS_ENABLED)
        *value = visible.by_mps;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].attribute == attribute)
            *value = known[i].value;
    REFUSE(attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX, CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

static char pools[SIM_MAX_DEVICES]; /* their addresses are the handles */

bool device_of_pool(CUmemoryPool pool, uint32_t *card) {
    for (CUdevice device = 0; device_valid(device); device++) {
        if ((const void *)pool != &pools[device])
            continue;
        *card = device_card(device);
        return true;
    }
    return false;
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    TRY(check(device, pool));
    *pool = (CUmemoryPool)(void *)&pools[device];
    return CUDA_SUCCESS;
}

CALL(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device),
     cuDeviceGetDefaultMemPool(pool, device))
