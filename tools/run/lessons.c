/*
 * lessons.c - reads the reports of processes that learn.
 */
#include "lessons.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/string_map.h"
#include "cli/tool.h"

static uint64_t number_of(const json_t *object, const char *key) {
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *string_of(const json_t *object, const char *key) {
    return tool_or(json_string_value(json_object_get(object, key)), "");
}

static struct lesson_process *process_of(struct lessons *lessons, const json_t *json,
                                         unsigned replica) {
    struct lesson_process *process = string_map_get(lessons->processes, string_of(json, "process"));
    if (process)
        return process;
    process = tool_resize(NULL, 1, sizeof(*process));
    *process = (struct lesson_process){tool_copy(string_of(json, "program")), replica, 0};
    string_map_put(&lessons->processes, string_of(json, "process"), process);
    return process;
}

static struct lesson *add(struct lessons *lessons, const json_t *json,
                          struct lesson_process *process, const char *key) {
    struct lesson *lesson = tool_resize(NULL, 1, sizeof(*lesson));
    *lesson = (struct lesson){.process = process,
                              .number = number_of(json, "number"),
                              .size = number_of(json, "size"),
                              .thread = number_of(json, "thread"),
                              .pool = number_of(json, "pool"),
                              .born = number_of(json, "born"),
                              .caller = tool_copy(string_of(json, "caller"))};
    string_map_put(&lessons->known, key, lesson);
    lessons->list = tool_grow(lessons->list, lessons->count, sizeof(lesson));
    lessons->list[lessons->count++] = lesson;
    return lesson;
}

static void set_block(struct lesson_block *block, json_t *json) {
    const char *hash = "";
    json_int_t size = 0, full = 0, since = 0, changed = 0, rewritten = 0;
    json_unpack(json, "[IIIIIs]", &size, &full, &since, &changed, &rewritten, &hash);
    *block = (struct lesson_block){.size = (uint64_t)size,
                                   .since = (uint64_t)since,
                                   .changed = (uint64_t)changed,
                                   .rewritten = (uint64_t)rewritten,
                                   .full = full};
    snprintf(block->hash, sizeof(block->hash), "%s", hash);
}

/* A line has some of the blocks, and all lines of an allocation are written in order. */
static void update(struct lesson *lesson, const json_t *json) {
    const json_t *blocks = json_object_get(json, "blocks");
    const size_t at = number_of(json, "at"), end = at + json_array_size(blocks);
    lesson->freed = number_of(json, "freed");
    if (at > lesson->count)
        return;
    lesson->count = end > lesson->count ? end : lesson->count;
    lesson->blocks = tool_resize(lesson->blocks, lesson->count + 1, sizeof(*lesson->blocks));
    for (size_t i = at; i < end; i++)
        set_block(&lesson->blocks[i], json_array_get(blocks, i - at));
}

static void read_line(struct lessons *lessons, const json_t *json, unsigned replica) {
    struct lesson_process *process = process_of(lessons, json, replica);
    if (json_object_get(json, "looked")) {
        process->looked = number_of(json, "looked");
        return;
    }
    char *key = tool_format("%s %" PRIu64, string_of(json, "process"), number_of(json, "number"));
    struct lesson *lesson = string_map_get(lessons->known, key);
    update(lesson ? lesson : add(lessons, json, process, key), json);
    free(key);
}

void lessons_read(struct lessons *lessons, FILE *file, unsigned replica) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    clearerr(file);
    while ((length = getline(&line, &room, file)) > 0 && line[length - 1] == '\n') {
        json_t *json = json_loadb(line, (size_t)length, 0, NULL);
        if (json_is_object(json))
            read_line(lessons, json, replica);
        json_decref(json);
    }
    if (length > 0)
        fseeko(file, -(off_t)length, SEEK_CUR); /* it is being written */
    free(line);
}

size_t lessons_alike(const struct lessons *lessons, size_t first) {
    const struct lesson *one = lessons->list[first];
    size_t end = first + 1;
    while (end < lessons->count && lessons->list[end]->size == one->size &&
           strcmp(lessons->list[end]->process->program, one->process->program) == 0)
        end++;
    return end - first;
}

static void free_process(void *value) {
    struct lesson_process *process = value;
    free(process->program);
    free(process);
}

static void free_lesson(void *value) {
    struct lesson *lesson = value;
    free(lesson->caller);
    free(lesson->blocks);
    free(lesson);
}

void lessons_free(struct lessons *lessons) {
    string_map_free(&lessons->known, free_lesson);
    string_map_free(&lessons->processes, free_process);
    free(lessons->list);
    free(lessons->rules);
}
