/*
 * fuzz_record.c - whatever stands in the directory, the checks say so and read nothing beyond it.
 *
 * The first byte picks what the rest is. A checksum would stop nearly every input at the door, so
 * the odd modes first make it fit; what then passes is held to what record.h promises.
 */
#include "fuzz.h"

#include "directory/frame_file.h"
#include "directory/record.h"

static void require_owner(const struct gps_owner *owner) {
    char text[GPS_PROC_NAME];
    struct gps_owner parsed;
    const char *end = memchr(owner->command, '\0', sizeof owner->command);
    need(end != NULL);
    for (const char *c = owner->command; c < end; c++)
        need((uint8_t)*c >= ' ' && *c != 0x7f && !(c[0] == '\xc2' && (uint8_t)c[1] < 0xa0));
    gps_owner_format(owner, text);
    need(gps_owner_parse(text, &parsed) && gps_owner_equal(owner, &parsed));
}

static void fuzz_aligned(const struct gps_region_record *bytes, size_t size, bool seal) {
    struct gps_region_record record;
    if (!seal) {
        gps_record_foreign(bytes, size);
        gps_record_check_fixed(bytes, size);
    }
    if (seal && size == sizeof record) {
        record = *bytes;
        record.id = gps_id_of_handle(record.handle);
        gps_record_seal(&record);
        bytes = &record;
    }
    if (gps_record_check(bytes, size) != NULL)
        return;
    memcpy(&record, bytes, sizeof record);
    need(memchr(record.name, '\0', sizeof record.name) != NULL);
    need(record.name[0] == '\0' || gps_name_valid(record.name));
    need(record.requested <= record.extent && record.offset + record.extent >= record.extent);
    need(strcmp(gps_state_name(record.status.state), "unknown") != 0);
    require_owner(&record.owner);
}

static void fuzz_record(const uint8_t *data, size_t size, bool seal) {
    struct gps_region_record *copy = malloc(size ? size : 1); /* its exact size, as in fuzz_text */
    need(copy != NULL);
    memcpy(copy, data, size);
    fuzz_aligned(copy, size, seal);
    free(copy);
}

static void fuzz_traces(const uint8_t *data, size_t size, bool seal) {
    struct gps_region_record record = {.checksum = 7};
    struct gps_region_traces traces;
    if (size != sizeof traces)
        return;
    memcpy(&traces, data, sizeof traces);
    if (seal)
        gps_record_seal_traces(&record, &traces);
    if (gps_record_check_traces(&record, &traces) != NULL)
        return;
    for (unsigned event = 0; event < GPS_HISTORY_EVENTS; event++)
        for (unsigned i = 0; i < traces.count[event]; i++)
            need(traces.module[event][i] == GPS_TRACE_NO_MODULE ||
                 memchr(traces.modules[traces.module[event][i]].path, '\0',
                        sizeof traces.modules[0].path) != NULL);
}

static void fuzz_proc(const uint8_t *data, size_t size, bool seal) {
    struct gps_proc_header header;
    if (seal && size >= sizeof header) {
        memcpy(&header, data, sizeof header);
        gps_proc_seal(&header);
        data = (const uint8_t *)&header;
        size = sizeof header;
    }
    if (gps_proc_check(data, size) != NULL)
        return;
    memcpy(&header, data, sizeof header);
    require_owner(&header.owner);
}

static void fuzz_slot(const uint8_t *data, size_t size, bool seal) {
    struct gps_slot slot = {0};
    memcpy(&slot, data, size < sizeof slot ? size : sizeof slot);
    if (seal)
        gps_slot_seal(&slot);
    if (gps_slot_valid(&slot))
        need(slot.state >= GPS_SLOT_INTENT && slot.state <= GPS_SLOT_CACHED);
}

static void seal_said(struct gps_frames_said *said) {
    gps_frames_head_seal(&said->head);
    gps_frames_writer_seal(&said->writer);
    for (unsigned i = 0; i < GPS_FRAMES_SLOTS_MAX; i++)
        gps_frames_slot_seal(&said->slot[i]);
}

static void fuzz_frames(const uint8_t *data, size_t size, bool seal) {
    struct gps_frames_said said = {0};
    struct gps_frames_reader reader = {0};
    memcpy(&said, data, size < sizeof said ? size : sizeof said);
    memcpy(&reader, data, size < sizeof reader ? size : sizeof reader);
    if (seal) {
        seal_said(&said);
        gps_frames_reader_seal(&reader);
    }
    if (gps_frames_said_valid(&said))
        need(said.head.slots >= 1 && said.head.slots <= GPS_FRAMES_SLOTS_MAX &&
             said.head.mode >= GPS_FRAMES_LATEST && said.head.mode <= GPS_FRAMES_EACH);
    if (!gps_frames_reader_valid(&reader))
        return;
    need(reader.slot <= GPS_FRAMES_SLOTS_MAX);
    if (reader.owner.pid)
        require_owner(&reader.owner);
}

static void fuzz_text(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1); /* its exact size: a read past the end is seen */
    char back[GPS_PROC_NAME];
    struct gps_owner owner;
    struct gps_id id;
    need(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (gps_owner_parse(text, &owner)) { /* one owner has one spelling */
        gps_owner_format(&owner, back);
        need(strcmp(text, back) == 0);
    }
    if (gps_id_parse(text, &id)) {
        gps_id_format(&id, back);
        need(strcmp(text, back) == 0);
    }
    if (gps_name_valid(text))
        need(strlen(text) < GPS_NAME_BYTES && text[0] != '.' && strchr(text, '/') == NULL);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t mode;
    if (size == 0)
        return 0;
    mode = data[0] % 12;
    data++;
    size--;
    switch (mode >> 1) {
    case 0:
        fuzz_record(data, size, mode & 1);
        break;
    case 1:
        fuzz_proc(data, size, mode & 1);
        break;
    case 2:
        fuzz_slot(data, size, mode & 1);
        break;
    case 3:
        fuzz_traces(data, size, mode & 1);
        break;
    case 4:
        fuzz_frames(data, size, mode & 1);
        break;
    default:
        fuzz_text(data, size);
        break;
    }
    return 0;
}
