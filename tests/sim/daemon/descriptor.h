/*
 * Descriptors that hold blocks, as cuMemExportToShareableHandle gives them out.
 *
 * What a program gets is the writing end of a pipe. It may be duplicated, inherited and passed on,
 * also by processes that never heard of us; when the last copy of it is closed, the pipe hangs up
 * at the end that is kept here, and the block loses its hold. Who imports sends us one, and we know
 * the pipe again by its inode, which nobody else can have while our end of it is open.
 */
#pragma once

#include "block.h"

/* 0 or -errno. */
int descriptor_start(void);
/* Readable when there are hang-ups for descriptor_reap. */
int descriptor_watch(void);
/* Lets go of what was held by descriptors of which no copy is left. */
void descriptor_reap(void);
uint64_t descriptor_count(void);

/* Both return a CUresult. *fd is then the caller's to send and to close. */
unsigned descriptor_make(const struct party *holder, uint64_t block, int *fd);
unsigned descriptor_import(struct party *user, int fd, struct block_view *view);
