/*
 * frame_file.h - the file of a region's whole frames, regions/<id>.frames (gpushare/frames.h).
 *
 * Errors, threads and memory are as in store.h. A struct gps_frame_file has one owner, which
 * serialises the calls. Bytes that were read are checked, and safe to use.
 */
#pragma once

#include "file.h"
#include "gpushare/frames.h"

struct gps_frame_file {
    char path[GPS_FILE_PATH];
    int fd; /* high; -1: none. Checked before each use, and opened again: programs close it */
    dev_t device;
    ino_t inode;
};

/* The exporter's part of the file. */
struct gps_frames_said {
    struct gps_frames_head head;
    struct gps_frames_writer writer;
    struct gps_frames_slot slot[GPS_FRAMES_SLOTS_MAX];
};

/* Whether all of it is valid (record.h). Pure. */
bool gps_frames_said_valid(const struct gps_frames_said *said);

/* The exporter makes the file, before the region can be found. *head is complete but for magic,
 * version, size and checksum. It is locked, and so no orphan, until gps_frame_file_made. -EAGAIN: a
 * sweep has removed it. */
int gps_frame_file_make(const struct gps_store *store, struct gps_frames_head *head,
                        struct gps_frame_file *file);
/* Unlocks the file: the region can be found, or there is none. Does nothing without a file. */
void gps_frame_file_made(struct gps_frame_file *file);
/* The exporter cannot publish frames: processes that come later share its buffer. */
void gps_frame_file_remove(const struct gps_store *store, const struct gps_id *region);
/* Opens the file of a region. -ENOENT. -EBADMSG: it is not valid. */
int gps_frame_file_open(const struct gps_store *store, const struct gps_id *region,
                        struct gps_frame_file *file, struct gps_frames_said *said);
void gps_frame_file_close(struct gps_frame_file *file);
/* For a process that only looks: opens the file for reading, reads all, and closes it. */
int gps_frame_file_look(const struct gps_store *store, const struct gps_id *region,
                        struct gps_frames_said *said,
                        struct gps_frames_reader readers[GPS_FRAMES_READERS_MAX]);

/* -EBADMSG: the contents are not valid, also after some tries. */
int gps_frame_file_read(struct gps_frame_file *file, struct gps_frames_said *said);
/* The readers' places, in use or free; a torn one counts as a reader of every slot. */
int gps_frame_file_readers(struct gps_frame_file *file,
                           struct gps_frames_reader readers[GPS_FRAMES_READERS_MAX]);

/* Each seals the struct that it writes. The exporter's: */
int gps_frame_file_put_slot(struct gps_frame_file *file, unsigned slot,
                            struct gps_frames_slot *what);
int gps_frame_file_put_writer(struct gps_frame_file *file, struct gps_frames_writer *what);
/* A reader's: takes a place, and writes it. -EAGAIN: another one does. -EUSERS: none is left. */
int gps_frame_file_join(const struct gps_store *store, struct gps_frame_file *file,
                        struct gps_frames_reader *reader, unsigned *place);
int gps_frame_file_put_reader(struct gps_frame_file *file, unsigned place,
                              struct gps_frames_reader *reader);

/* Orders a write before a read, so that of two processes one sees the other's write: the writer
 * clears a slot's frame and reads the readers (claim, frames/publish.c), a reader notes its slot
 * and reads the frame (reader_take_slot, frames/refresh.c). */
static inline void gps_frame_file_between(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
