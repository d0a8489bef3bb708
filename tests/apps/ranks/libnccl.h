/* libnccl.h - the calls of a library that has the name of NCCL's. */
#pragma once

/* Makes a buffer, opens that of the rank at the other end of the socket, and tears both down. */
int rank_run(int peer);
/* Frees memory for the program. */
int rank_free(void *memory);
