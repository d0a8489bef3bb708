/*
 * record.c - seals, checks and formats the structs of the published directory.
 *
 * A checksum proves that the bytes are those that were written, not that the writer is trusted. So
 * the checks behind it are complete on their own, and the fuzzer gives them valid checksums.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

#include "record.h"
#include "util/digits.h"
#include "util/text.h"

/* The checksum is the last field of every struct: it covers all bytes before it. */
#define SUM(object)         XXH3_64bits((object), sizeof(*(object)) - sizeof(uint64_t))
#define STATUS_SUM(s, seed) XXH3_64bits_withSeed((s), sizeof(*(s)) - sizeof(uint64_t), (seed))

/* The beginning of a record, and of the header of a process's file. */
struct frame {
    char magic[8];
    uint32_t version, size;
};

static void seal_frame(void *object, const char magic[8], uint32_t size) {
    struct frame frame = {.version = GPS_FORMAT_VERSION, .size = size};
    memcpy(frame.magic, magic, sizeof(frame.magic));
    memcpy(object, &frame, sizeof(frame));
}

static const char *record_check_frame(const void *object, const char magic[8], uint32_t size,
                                      bool sum_matches) {
    struct frame frame;
    memcpy(&frame, object, sizeof(frame));
    if (memcmp(frame.magic, magic, sizeof(frame.magic)) != 0)
        return "magic does not match";
    if (frame.version != GPS_FORMAT_VERSION)
        return "version is not supported";
    if (frame.size != size)
        return "size field does not match";
    return sum_matches ? NULL : "checksum does not match";
}

static uint64_t record_sum(const struct gps_region_record *record) {
    return XXH3_64bits(record, offsetof(struct gps_region_record, checksum));
}

void gps_record_seal(struct gps_region_record *record) {
    seal_frame(record, GPS_REGION_MAGIC, sizeof(*record));
    record->checksum = record_sum(record);
    gps_record_seal_status(record, &record->status);
}

void gps_record_seal_status(const struct gps_region_record *record,
                            struct gps_region_status *status) {
    status->checksum = STATUS_SUM(status, record->checksum);
}

void gps_record_seal_traces(const struct gps_region_record *record,
                            struct gps_region_traces *traces) {
    traces->checksum = STATUS_SUM(traces, record->checksum);
}

void gps_proc_seal(struct gps_proc_header *header) {
    seal_frame(header, GPS_PROC_MAGIC, sizeof(*header));
    header->checksum = SUM(header);
}

void gps_slot_seal(struct gps_slot *slot) {
    slot->checksum = SUM(slot);
}

/* A command is shown on terminals. */
static bool command_valid(const char command[GPS_COMM_BYTES]) {
    const char *end = memchr(command, '\0', GPS_COMM_BYTES);
    if (!end)
        return false;
    uint32_t code;
    size_t length = 1;
    for (const char *c = command; length > 0 && c < end; c += length)
        length = gps_text_character(c, &code);
    return length > 0;
}

const char *gps_owner_check(const struct gps_owner *owner) {
    if (owner->pid == 0 || owner->pid > INT32_MAX)
        return "owner's pid is out of range";
    if (owner->nonce == 0)
        return "owner's nonce is 0";
    if (!command_valid(owner->command))
        return "owner's command is not a printable text";
    return NULL;
}

static const char *check_vmm(const struct gps_region_record *record) {
    if (record->keep > GPS_KEEP_FOR)
        return "keep is unknown";
    if ((record->flags & ~(uint32_t)GPS_REGION_READ_ONLY) != 0)
        return "a flag is unknown";
    return gps_owner_check(&record->creator);
}

static const char *check_region(const struct gps_region_record *record) {
    struct gps_id id = gps_id_of_handle(record->handle);
    if (!gps_id_equal(&id, &record->id))
        return "id is not the hash of the handle";
    if (record->generation == 0)
        return "generation is 0";
    if (record->backing < GPS_BACKING_IPC || record->backing > GPS_BACKING_PLACE)
        return "backing is unknown";
    if (record->locked > 1)
        return "whether it is to be locked is unknown";
    if (record->requested > record->extent)
        return "requested size is larger than the extent";
    if (record->extent > UINT64_MAX - record->offset)
        return "extent and offset overflow";
    if (!memchr(record->name, '\0', sizeof(record->name)))
        return "name is not terminated";
    if (record->name[0] != '\0' && !gps_name_valid(record->name))
        return "name is not valid";
    const char *why = record->backing == GPS_BACKING_VMM ? check_vmm(record) : NULL;
    return why ? why : gps_owner_check(&record->owner);
}

static const char *check_status(const struct gps_region_record *record) {
    const struct gps_region_status *status = &record->status;
    if (status->checksum != STATUS_SUM(status, record->checksum))
        return "status checksum does not match";
    if (status->state < GPS_STATE_WRITING || status->state > GPS_STATE_OFFLOADED)
        return "state is unknown";
    if (status->reserved0 != 0)
        return "reserved bytes of the status are not 0";
    if (status->until != 0 && status->state != GPS_STATE_FINAL)
        return "a hand-over time is set in a state that has none";
    return NULL;
}

const char *gps_record_check_fixed(const struct gps_region_record *record, size_t size) {
    if (size != sizeof(*record) && size != sizeof(*record) + sizeof(struct gps_region_traces))
        return "size of the file does not match";
    const char *why = record_check_frame(record, GPS_REGION_MAGIC, sizeof(*record),
                                         record->checksum == record_sum(record));
    return why ? why : check_region(record);
}

const char *gps_record_check(const struct gps_region_record *record, size_t size) {
    const char *why = gps_record_check_fixed(record, size);
    return why ? why : check_status(record);
}

static const char *check_trace(const struct gps_region_traces *traces, unsigned event) {
    if (traces->count[event] > GPS_TRACE_FRAMES)
        return "a stack has too many frames";
    for (unsigned i = 0; i < traces->count[event]; i++)
        if (traces->module[event][i] >= traces->module_count &&
            traces->module[event][i] != GPS_TRACE_NO_MODULE)
            return "a frame's module is unknown";
    return NULL;
}

static bool trace_module_valid(const struct gps_trace_module *module) {
    return module->build_id_bytes <= GPS_BUILD_ID_BYTES &&
           memchr(module->path, '\0', sizeof(module->path)) != NULL;
}

const char *gps_record_check_traces(const struct gps_region_record *record,
                                    const struct gps_region_traces *traces) {
    const char *why = NULL;
    if (traces->checksum != STATUS_SUM(traces, record->checksum))
        return "checksum of the stacks does not match";
    if (traces->module_count > GPS_TRACE_MODULES)
        return "too many modules";
    for (unsigned i = 0; i < traces->module_count; i++)
        if (!trace_module_valid(&traces->modules[i]))
            return "a module is not valid";
    for (unsigned event = 0; !why && event < GPS_HISTORY_EVENTS; event++)
        why = check_trace(traces, event);
    return why;
}

bool gps_record_foreign(const struct gps_region_record *record, size_t size) {
    return size >= offsetof(struct gps_region_record, size) &&
           memcmp(record->magic, GPS_REGION_MAGIC, sizeof(record->magic)) == 0 &&
           record->version != GPS_FORMAT_VERSION;
}

const char *gps_proc_check(const void *bytes, size_t size) {
    struct gps_proc_header header;
    if (size < sizeof(header))
        return "file is too short";
    memcpy(&header, bytes, sizeof(header));
    const char *why = record_check_frame(&header, GPS_PROC_MAGIC, sizeof(header),
                                         header.checksum == SUM(&header));
    if (!why && !memchr(header.arguments, '\0', sizeof(header.arguments)))
        why = "arguments are not terminated";
    return why ? why : gps_owner_check(&header.owner);
}

bool gps_slot_valid(const struct gps_slot *slot) {
    if (slot->state < GPS_SLOT_INTENT || slot->state > GPS_SLOT_CACHED)
        return false;
    if (slot->via < GPS_VIA_PROGRAM || slot->via > GPS_VIA_STEADY)
        return false;
    return slot->checksum == SUM(slot);
}

bool gps_slot_torn(const struct gps_slot *slot) {
    static const struct gps_slot empty;
    return slot->checksum != SUM(slot) && memcmp(slot, &empty, sizeof(empty)) != 0;
}

/* --- whole frames; zeros: not written yet --- */

void gps_frames_head_seal(struct gps_frames_head *head) {
    seal_frame(head, GPS_FRAMES_MAGIC, sizeof(struct gps_frames_file));
    head->checksum = SUM(head);
}

bool gps_frames_head_valid(const struct gps_frames_head *head) {
    return !record_check_frame(head, GPS_FRAMES_MAGIC, sizeof(struct gps_frames_file),
                               head->checksum == SUM(head)) &&
           (head->mode == GPS_FRAMES_LATEST || head->mode == GPS_FRAMES_EACH) && head->slots &&
           head->slots <= GPS_FRAMES_SLOTS_MAX;
}

#define FRAMES_PART(part, is_right)                                                                \
    void gps_frames_##part##_seal(struct gps_frames_##part *part) {                                \
        part->checksum = SUM(part);                                                                \
    }                                                                                              \
    bool gps_frames_##part##_valid(const struct gps_frames_##part *part) {                         \
        static const struct gps_frames_##part empty;                                               \
        return (part->checksum == SUM(part) || memcmp(part, &empty, sizeof(empty)) == 0) &&        \
               (is_right);                                                                         \
    }
FRAMES_PART(writer, true)
FRAMES_PART(slot, true)
FRAMES_PART(reader, reader->slot <= GPS_FRAMES_SLOTS_MAX &&
                        (!reader->owner.pid || !gps_owner_check(&reader->owner)))

bool gps_slot_wait(const struct gps_slot *slot, struct gps_wait_slot *wait) {
    if (slot->via < GPS_VIA_WAIT_EXPORTER || slot->via > GPS_VIA_WAIT_IMPORTER)
        return false;
    memcpy(wait, slot, sizeof(*wait));
    return memchr(wait->name, '\0', sizeof(wait->name)) != NULL;
}

const char *gps_wait_whom(uint32_t via) {
    return via == GPS_VIA_WAIT_EXPORTER    ? "an exporter of "
           : via == GPS_VIA_WAIT_IMPORTERS ? "the importers of "
                                           : "an importer of ";
}

const char *gps_not_merging_why(uint64_t why) {
    static const char *const reasons[] = {
        [GPS_NOT_MERGING_MEMBARRIER] = "the kernel refuses membarrier(2)",
        [GPS_NOT_MERGING_THREAD] = "the thread that merges could not be started",
        [GPS_NOT_MERGING_KEY] = "the published directory, or the secret in it, cannot be used",
        [GPS_NOT_MERGING_KEEPER] = "no keeper takes or gives blocks",
        [GPS_NOT_MERGING_STREAMS] = "there was no memory to note a stream",
        [GPS_NOT_MERGING_CAPTURE] = "graphs are captured all the time",
        [GPS_NOT_MERGING_BUSY] =
            "kernels overlap, so that the GPU is never idle, though work is held for 20 ms",
        [GPS_NOT_MERGING_RDMA] = "a device for RDMA is open, and the rule has not rdma = on",
        [GPS_NOT_MERGING_MPS] = "the GPU is shared by MPS, and the rule has not mps = on",
        [GPS_NOT_MERGING_CROWDED] = "too many descriptors of this user are on their way between "
                                    "processes; raise the limit (ulimit -n)",
        [GPS_NOT_MERGING_DESCRIPTORS] =
            "this process, or the system, has no descriptor left; raise its limit (ulimit -n, "
            "fs.file-max)",
        [GPS_NOT_MERGING_FULL] =
            "the keeper has as many blocks as its limit of descriptors allows; "
            "raise the hard limit where it starts (ulimit -Hn)",
        [GPS_NOT_MERGING_PAUSED] = "it is switched off (gpushare merge off)",
        [GPS_NOT_MERGING_UNKNOWN] =
            "the program has called a function of the driver that this version does not know",
        [GPS_NOT_MERGING_BYPASSED] =
            "a library that was loaded with RTLD_DEEPBIND calls the driver "
            "past gpushare",
    };
    return why > 0 && why < sizeof(reasons) / sizeof(reasons[0]) ? reasons[why]
                                                                 : "this version does not know why";
}

static const struct {
    const char *name, *why;
} private_reasons[] = {
#define REASON(id, name, why) [id] = {name, why},
    GPS_PRIVATE_REASONS(REASON)};

const char *gps_private_name(enum gps_private why) {
    return private_reasons[why].name;
}

const char *gps_private_why(enum gps_private why) {
    return private_reasons[why].why;
}

static struct gps_id id_of(const void *bytes, size_t count) {
    XXH128_canonical_t canonical;
    struct gps_id id;

    static_assert(sizeof(canonical) == sizeof(id), "an id is one XXH3-128 hash");
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, count));
    memcpy(&id, &canonical, sizeof(id));
    return id;
}

struct gps_id gps_id_of_handle(const uint8_t handle[GPS_HANDLE_BYTES]) {
    return id_of(handle, GPS_HANDLE_BYTES);
}

struct gps_id gps_id_of_name(const char *name) {
    return id_of(name, strlen(name));
}

struct gps_id gps_id_of_pointer(const uint8_t exported[GPS_HANDLE_BYTES], uint32_t exporter) {
    const struct gps_id data = gps_id_of_handle(exported);
    uint8_t block[GPS_HANDLE_BYTES] = {0};
    memcpy(block, &data, sizeof(data));
    memcpy(block + sizeof(data), &exporter, sizeof(exporter));
    return gps_id_of_handle(block);
}

bool gps_id_equal(const struct gps_id *a, const struct gps_id *b) {
    return memcmp(a, b, sizeof(*a)) == 0;
}

void gps_id_format(const struct gps_id *id, char text[GPS_ID_HEX]) {
    gps_hex_format(id->bytes, sizeof(id->bytes), text);
}

bool gps_id_parse(const char *text, struct gps_id *id) {
    struct gps_id parsed = {0};
    if (!gps_hex_parse(&text, parsed.bytes, sizeof(parsed.bytes)) || *text != '\0')
        return false;
    *id = parsed;
    return true;
}

bool gps_name_valid(const char *name) {
    size_t length = 0;
    if (name[0] == '.')
        return false;
    while (length < GPS_NAME_BYTES && gps_is_name_char(name[length]))
        length++;
    return length > 0 && length < GPS_NAME_BYTES && name[length] == '\0';
}

void gps_owner_format(const struct gps_owner *owner, char text[GPS_PROC_NAME]) {
    struct gps_text out = gps_text_on(text, GPS_PROC_NAME);
    gps_text_add(&out, "%lu.%u.%lu.%016lx", owner->pid_ns, owner->pid, owner->start, owner->nonce);
}

bool gps_owner_parse(const char *text, struct gps_owner *owner) {
    struct gps_owner parsed = {0};
    if (!gps_dec_parse(&text, &parsed.pid_ns) || *text++ != '.')
        return false;
    uint64_t pid;
    if (!gps_dec_parse(&text, &pid) || *text++ != '.')
        return false;
    if (!gps_dec_parse(&text, &parsed.start) || *text++ != '.')
        return false;
    if (!gps_hex64_parse(&text, &parsed.nonce) || *text != '\0')
        return false;
    if (pid == 0 || pid > INT32_MAX || parsed.nonce == 0)
        return false;
    parsed.pid = (uint32_t)pid;
    *owner = parsed;
    return true;
}

bool gps_owner_equal(const struct gps_owner *a, const struct gps_owner *b) {
    return a->pid_ns == b->pid_ns && a->pid == b->pid && a->start == b->start &&
           a->nonce == b->nonce;
}

const struct gps_owner *gps_record_creator(const struct gps_region_record *record) {
    return record->backing == GPS_BACKING_VMM ? &record->creator : &record->owner;
}

bool gps_record_over(const struct gps_region_record *record) {
    return record->status.state == GPS_STATE_CLOSING || record->status.state == GPS_STATE_FREED;
}

const char *gps_state_name(uint32_t state) {
    static const char *const names[] = {
        [GPS_STATE_WRITING] = "exporting", [GPS_STATE_READY] = "ready",
        [GPS_STATE_FINAL] = "final",       [GPS_STATE_CLOSING] = "closing",
        [GPS_STATE_FREED] = "freed",       [GPS_STATE_OFFLOADED] = "offloaded",
    };
    if (state < GPS_STATE_WRITING || state > GPS_STATE_OFFLOADED)
        return "unknown";
    return names[state];
}
