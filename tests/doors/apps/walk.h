/*
 * walk.h - one walk through a door: every kind of hooked call, in one process.
 *
 * A door gives five functions. The walk allocates and exports memory of its own, opens a peer's
 * memory twice and closes it, once too often, and frees its own twice. With gpushare each of these
 * leaves its mark: the published region, the slot that says what is held open, or a finding that
 * names the call. The first line printed holds the codes, which must be those of a run without
 * gpushare; the second holds the marks.
 */
#pragma once

#include "../../common/system_headers.h"

#include <gpushare/region.h>

enum { WALK_HANDLE = 64, WALK_SIZE = 1 << 20 };

struct door {
    int (*alloc)(void **out, size_t size);
    int (*free)(void *pointer);
    int (*export)(void *handle, void *pointer);
    int (*open)(void **out, const void *handle);
    int (*close)(void *pointer);
};

/* --- marks --- */

/* Adds up what `count` says of the files of a published folder. */
static inline int walk_sum(const char *folder, int (*count)(const char *path)) {
    const char *root = getenv("GPUSHARE_DIR");
    char path[1024];
    int sum = 0;
    snprintf(path, sizeof path, "%s/default/%s", root ? root : "/nowhere", folder);
    DIR *directory = opendir(path);
    const size_t length = strlen(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        snprintf(path + length, sizeof path - length, "/%s", entry->d_name);
        sum += entry->d_name[0] == '.' ? 0 : count(path);
    }
    if (directory)
        closedir(directory);
    return sum;
}

static inline int walk_one(const char *path) {
    return 1;
}

static inline int walk_open_slots(const char *path) {
    struct gps_slot slot;
    int count = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (off_t at = sizeof(struct gps_proc_header);
         fd >= 0 && pread(fd, &slot, sizeof slot, at) == sizeof slot; at += (off_t)sizeof slot)
        count += slot.state == GPS_SLOT_OPEN;
    close(fd);
    return count;
}

static inline int walk_regions(void) {
    return walk_sum("regions", walk_one);
}

static inline int walk_held(void) {
    return walk_sum("procs", walk_open_slots);
}

/* --- the peer --- */

struct walk_peer {
    pid_t pid;
    int in;
    unsigned char handle[WALK_HANDLE];
};

/* fork and execl: in a library loaded with RTLD_DEEPBIND `environ` is another variable. */
static inline int walk_peer_start(struct walk_peer *peer) {
    const char *path = getenv("DOOR_PEER");
    int down[2], up[2];
    if (!path || pipe2(down, O_CLOEXEC) || pipe2(up, O_CLOEXEC))
        return -1;
    peer->pid = fork();
    if (peer->pid == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        execl(path, path, NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    peer->in = down[1];
    const ssize_t got = read(up[0], peer->handle, sizeof peer->handle);
    close(up[0]);
    return got == sizeof peer->handle ? 0 : -1;
}

static inline void walk_peer_end(const struct walk_peer *peer) {
    close(peer->in);
    waitpid(peer->pid, NULL, 0);
}

/* --- the walk --- */

static inline int walk(const struct door *door) {
    unsigned char handle[WALK_HANDLE] = {0};
    struct walk_peer peer;
    void *own = NULL, *opened = NULL, *again = NULL;
    if (walk_peer_start(&peer)) {
        puts("no peer");
        return 1;
    }
    const int before = walk_regions();
    const int alloc = door->alloc(&own, WALK_SIZE);
    const int export = door->export(handle, own);
    const int published = walk_regions() - before;
    const int open_own = door->open(&again, handle);
    const int open = door->open(&opened, peer.handle);
    const int held = walk_held();
    const int open_twice = door->open(&again, peer.handle);
    const int close_one = door->close(opened), close_two = door->close(opened);
    const int left = walk_held();
    const int close_three = door->close(opened);
    const int first = door->free(own), second = door->free(own);
    walk_peer_end(&peer);
    printf("alloc=%d export=%d own=%d open=%d,%d same=%d close=%d,%d,%d free=%d,%d\n", alloc,
           export, open_own, open, open_twice, again == opened, close_one, close_two, close_three,
           first, second);
    printf("published=%d held=%d left=%d\n", published, held, left);
    fflush(stdout);
    return alloc || export || open || open_twice || close_one || close_two || first;
}
