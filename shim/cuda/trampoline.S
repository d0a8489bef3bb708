/* trampoline.S - dlsym and dlvsym for CUDA's names. */
#include "doors/trampoline.inc"
