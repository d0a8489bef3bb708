/* hip_trampoline.S - dlsym and dlvsym for HIP's names. */
#include "doors/trampoline.inc"
