/*
 * fuzz_keeper.c - whatever is said to the keeper or by it, the checks say so and read nothing
 * beyond it.
 *
 * The first byte picks what the rest is. The odd modes make its checksum fit; what then passes is
 * held to what keeper_protocol.h promises: the record of a deposit is valid, and a request names
 * nothing that is not its own to name.
 */
#include "fuzz.h"

#include "keeper/keeper_protocol.h"

static void require_request(const struct gps_keeper_request *request) {
    struct gps_region_record record;
    need(request->ask >= GPS_KEEPER_DEPOSIT && request->ask <= GPS_KEEPER_RELOAD);
    need(gps_owner_check(&request->sender) == NULL);
    need(memchr(request->record.name, '\0', sizeof request->record.name) != NULL);
    if (request->ask != GPS_KEEPER_DEPOSIT)
        return;
    gps_request_record(request, &request->sender, &record);
    need(gps_record_check(&record, sizeof record) == NULL);
    need(record.backing == GPS_BACKING_VMM && record.keep <= GPS_KEEP_FOR);
}

static void fuzz_request(const uint8_t *data, size_t size, bool seal) {
    struct gps_keeper_request request;
    if (!seal) {
        gps_request_check(data, size);
        return;
    }
    memset(&request, 0, sizeof request);
    memcpy(&request, data, size < sizeof request ? size : sizeof request);
    if (request.ask == GPS_KEEPER_DEPOSIT)
        request.record.id = gps_id_of_handle(request.record.handle);
    gps_request_seal(&request);
    if (gps_request_check(&request, sizeof request) == NULL)
        require_request(&request);
}

static void fuzz_reply(const uint8_t *data, size_t size, bool seal) {
    struct gps_keeper_reply reply;
    if (!seal) {
        gps_reply_check(data, size);
        return;
    }
    memset(&reply, 0, sizeof reply);
    memcpy(&reply, data, size < sizeof reply ? size : sizeof reply);
    gps_reply_seal(&reply);
    if (gps_reply_check(&reply, sizeof reply) == NULL)
        need(reply.status <= 0 && gps_owner_check(&reply.keeper) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    if ((data[0] & 2) == 0)
        fuzz_request(data + 1, size - 1, data[0] & 1);
    else
        fuzz_reply(data + 1, size - 1, data[0] & 1);
    return 0;
}
