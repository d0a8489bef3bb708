/*
 * frames.h - regions/<id>.frames of the published directory, byte for byte: the whole frames that
 * one process publishes and others read.
 *
 * A region with frames (gps_region_record.frame_slots) is its exporter's buffer, and behind that
 * slots for whole frames, gps_frames_stride bytes from each other. The exporter copies its buffer
 * into a slot; an importer has memory of its own, and copies the newest slot there. This file says
 * what the slots have and who reads them. As all files here it is copied, not mapped; each struct
 * has one writer, who replaces it by one pwrite.
 *
 * A slot is marked as being written before the writer looks whether somebody reads it; a reader
 * says which slot it reads before it looks whether that still has the frame. So whichever comes
 * second sees the other. What a dead reader says does not count: its owner tells.
 */
#ifndef GPUSHARE_FRAMES_H
#define GPUSHARE_FRAMES_H

#include "region.h"

#define GPS_FRAMES_SUFFIX      ".frames"
#define GPS_FRAMES_MAGIC       "GPSFRAM"
#define GPS_FRAMES_SLOTS_MAX   16u
#define GPS_FRAMES_READERS_MAX 32u

/* Which frames a reader gets. */
enum gps_frames_mode {
    GPS_FRAMES_OFF = 0,
    GPS_FRAMES_LATEST = 1, /* the newest; nobody waits for anybody */
    GPS_FRAMES_EACH = 2,   /* each, in order; who is late is waited for, for a limited time */
};

/* The exporter's, written once. */
struct gps_frames_head {
    char magic[8];    /* GPS_FRAMES_MAGIC */
    uint32_t version; /* GPS_FORMAT_VERSION */
    uint32_t size;    /* of the whole file: sizeof(struct gps_frames_file) */
    struct gps_id region;
    uint32_t mode; /* enum gps_frames_mode */
    uint32_t slots;
    uint64_t timeout;  /* nanoseconds that EACH waits at most */
    uint64_t any;      /* 1: any work of a program's may use its buffer */
    uint64_t checksum; /* of the bytes before it, as in each struct here */
};

/* The exporter's, written with each frame. Times are of CLOCK_MONOTONIC, in nanoseconds. */
struct gps_frames_writer {
    uint64_t newest;   /* number of the newest frame that is whole; the first has 1, 0: none yet */
    uint64_t at;       /* when it was published */
    uint64_t left_out; /* frames for which there was no slot */
    uint64_t late;     /* times that it waited in vain for readers of EACH */
    uint64_t odd;      /* frames with another number of waits than the usual one */
    uint32_t ended;    /* 1: the exporter has freed it, and no more come */
    uint32_t usual;    /* waits that each of the last frames had; 0: not known */
    uint64_t reserved1;
    uint64_t checksum;
};

/* The exporter's, one a slot. */
struct gps_frames_slot {
    uint64_t frame; /* that it has; 0: none, or it is being written */
    uint64_t at;    /* when that was published */
    uint64_t reserved[5];
    uint64_t checksum;
};

/* A reader's. Who takes a free one, or one of a dead reader, locks the whole file for that. */
struct gps_frames_reader {
    struct gps_owner owner; /* pid 0: it is free */
    uint32_t slot;          /* that it reads, from 1; 0: none */
    uint32_t reserved0;
    uint64_t frame;    /* that it reads there */
    uint64_t have;     /* the newest that it has had; 0: none */
    uint64_t at;       /* when that one was published */
    uint64_t read;     /* frames that it has had */
    uint64_t left_out; /* frames that it has not */
    uint64_t late;     /* times that it waited in vain for the next of EACH */
    uint64_t checksum;
};

struct gps_frames_file {
    struct gps_frames_head head;
    struct gps_frames_writer writer;
    struct gps_frames_slot slot[GPS_FRAMES_SLOTS_MAX];
    struct gps_frames_reader reader[GPS_FRAMES_READERS_MAX];
};

/* From the beginning of the region to its first slot, and from slot to slot. */
static inline uint64_t gps_frames_stride(uint64_t size) {
    return (size + 511) / 512 * 512;
}

static_assert(sizeof(struct gps_frames_head) == 64, "frames: head");
static_assert(sizeof(struct gps_frames_writer) == 64, "frames: writer");
static_assert(sizeof(struct gps_frames_slot) == 64, "frames: slot");
static_assert(sizeof(struct gps_frames_reader) == 128, "frames: reader");

#endif
