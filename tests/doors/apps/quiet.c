/* quiet.c - prints what a preloaded library could have left in a process that never uses CUDA:
 * threads, descriptors, mappings of libcuda, signal state, environment, errno. */
#include "../../common/system_headers.h"

extern char **environ;

static int entries_of(const char *path) {
    int count = 0;
    DIR *directory = opendir(path);
    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

static void print_lines(const char *path, const char *const *wanted, size_t count) {
    char line[512];
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < count; i++)
            if (strstr(line, wanted[i]))
                fputs(line, stdout);
    if (file)
        fclose(file);
}

int main(void) {
    static const char *const state[] = {"Threads:", "SigBlk:", "SigIgn:", "SigCgt:"};
    static const char *const cuda[] = {"libcuda", "libcudart", "/dev/shm"};
    int variables = 0;
    printf("errno %d\n", errno);
    printf("descriptors %d\n", entries_of("/proc/self/fd"));
    print_lines("/proc/self/status", state, sizeof state / sizeof *state);
    print_lines("/proc/self/maps", cuda, sizeof cuda / sizeof *cuda);
    for (char **entry = environ; *entry; entry++)
        variables += strncmp(*entry, "LD_PRELOAD=", 11) != 0;
    printf("variables %d\n", variables);
    return 7;
}
