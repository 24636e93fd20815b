/* Put before the C library (LD_PRELOAD), this makes each flush to the disk take 100 ms longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

static int slowly(const char *name, int file) {
    int (*flush)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    usleep(100000);
    return flush(file);
}

int fdatasync(int file) { return slowly("fdatasync", file); }
int fsync(int file) { return slowly("fsync", file); }
