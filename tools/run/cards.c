#include "cards.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT 5000 /* ms */

static int ask(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)(unsigned) = NULL;
    int (*count)(int *) = NULL;
    int found = 0;
    if (driver) {
        *(void **)&init = dlsym(driver, "cuInit");
        *(void **)&count = dlsym(driver, "cuDeviceGetCount");
    }
    return init && count && init(0) == 0 && count(&found) == 0 ? found : 0;
}

static void run_child(int out) {
    const int null = open("/dev/null", O_RDWR);
    for (int i = 0; i <= STDERR_FILENO; i++)
        dup2(null, i);
    setenv("GPUSHARE_MODE", "off", 1); /* we may be preloaded ourselves */
    const int found = ask();
    _exit(write(out, &found, sizeof(found)) == sizeof(found) ? 0 : 1);
}

unsigned cards_count(void) {
    int ends[2], found = 0;
    const pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child < 0)
        return 0;
    if (child == 0)
        run_child(ends[1]);
    close(ends[1]);
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    if (poll(&ready, 1, TIMEOUT) != 1 || read(ends[0], &found, sizeof(found)) != sizeof(found))
        found = 0;
    close(ends[0]);
    kill(child, SIGKILL); /* it has answered, or never will */
    waitpid(child, NULL, found ? 0 : WNOHANG);
    return found > 0 ? (unsigned)found : 0;
}
