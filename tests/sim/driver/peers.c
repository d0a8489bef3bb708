/* Which other cards' memory a context may use. */
#include "context.h"
#include "device.h"

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    CURRENT(context);
    REFUSE(flags, CUDA_ERROR_INVALID_VALUE);
    REFUSE(!peer || !context_known(peer) || !peer->alive, CUDA_ERROR_INVALID_CONTEXT);
    REFUSE(peer->card == context->card, CUDA_ERROR_INVALID_DEVICE);
    REFUSE(!device_reaches(context->card, peer->card), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    REFUSE(context->peers & 1u << peer->card, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    context->peers |= 1u << peer->card;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peer) {
    CURRENT(context);
    REFUSE(!peer || !context_known(peer), CUDA_ERROR_INVALID_CONTEXT);
    REFUSE(!(context->peers & 1u << peer->card), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    context->peers &= ~(1u << peer->card);
    return CUDA_SUCCESS;
}

bool context_reaches(const struct CUctx_st *context, const struct block *block) {
    if (block->card == context->card)
        return true;
    if (block->kind == BLOCK_IMPORT)
        return block->context->card == context->card;
    return block->kind != BLOCK_PLAIN || context->peers & 1u << block->card;
}
