/* Checkpoints of processes; see process.h. */
#include "process.h"

#include "client.h"
#include "event.h"

#include <cuda.h>

static unsigned lock(struct client *client) {
    client->state = CU_PROCESS_STATE_LOCKED;
    event_page_lock(client->party.id, true, false);
    return CUDA_SUCCESS;
}

static unsigned checkpoint(struct client *client) {
    const bool moved = block_checkpoint(&client->party);
    client->state = CU_PROCESS_STATE_CHECKPOINTED;
    event_page_lock(client->party.id, true, moved);
    return CUDA_SUCCESS;
}

/* Without room the process is lost, and so is one that has memory of others. */
static unsigned restore(struct client *client) {
    const bool room = block_has_room(&client->party);
    if (!room || client->party.lost) {
        client->state = CU_PROCESS_STATE_FAILED;
        return room ? client->party.lost : CUDA_ERROR_OUT_OF_MEMORY;
    }
    block_restore(&client->party);
    client->state = CU_PROCESS_STATE_LOCKED;
    return CUDA_SUCCESS;
}

static unsigned unlock(struct client *client) {
    client->state = CU_PROCESS_STATE_RUNNING;
    event_page_lock(client->party.id, false, false);
    return CUDA_SUCCESS;
}

static unsigned take_step(struct client *client, enum sim_process what) {
    static const struct {
        uint32_t from;
        unsigned (*take)(struct client *client);
    } steps[] = {[SIM_PROCESS_LOCK] = {CU_PROCESS_STATE_RUNNING, lock},
                 [SIM_PROCESS_CHECKPOINT] = {CU_PROCESS_STATE_LOCKED, checkpoint},
                 [SIM_PROCESS_RESTORE] = {CU_PROCESS_STATE_CHECKPOINTED, restore},
                 [SIM_PROCESS_UNLOCK] = {CU_PROCESS_STATE_LOCKED, unlock}};
    if (what <= SIM_PROCESS_STATE || what > SIM_PROCESS_UNLOCK)
        return CUDA_ERROR_INVALID_VALUE;
    if (client->state == CU_PROCESS_STATE_FAILED && what == SIM_PROCESS_RESTORE)
        return CUDA_ERROR_OPERATING_SYSTEM;
    return client->state == steps[what].from ? steps[what].take(client) : CUDA_ERROR_ILLEGAL_STATE;
}

unsigned process_ask(int pid, enum sim_process what, uint64_t *state, uint64_t *bytes) {
    struct client *client = client_of(pid);
    if (!client)
        return pid > 0 && kill(pid, 0) == 0 ? CUDA_ERROR_NOT_INITIALIZED
                                            : CUDA_ERROR_OPERATING_SYSTEM;
    const unsigned code = what == SIM_PROCESS_STATE ? CUDA_SUCCESS : take_step(client, what);
    *bytes = block_bytes(&client->party);
    /* The driver calls a lost process checkpointed. */
    *state =
        client->state == CU_PROCESS_STATE_FAILED ? CU_PROCESS_STATE_CHECKPOINTED : client->state;
    return code;
}
