/* The clocks of a process, moved by hand: preloaded (LD_PRELOAD), so that every reading in the process passes here.
   The wall clock moves CLOCK_REALTIME, the boot clock CLOCK_BOOTTIME and CLOCK_MONOTONIC, as a suspension does. */

#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long wall_ns, boot_ns;

void clock_jump(long long wall, long long boot) {
    wall_ns += wall;
    boot_ns += boot;
}

static long long moved(clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME: case CLOCK_REALTIME_COARSE: return wall_ns;
    case CLOCK_BOOTTIME: case CLOCK_MONOTONIC: case CLOCK_MONOTONIC_COARSE: case CLOCK_MONOTONIC_RAW: return boot_ns;
    default: return 0;
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0) {
        long long ns = (long long)now->tv_sec * 1000000000 + now->tv_nsec + moved(clock);
        now->tv_sec = ns / 1000000000;
        now->tv_nsec = ns % 1000000000;
    }
    return (int)result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec at;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &at);
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (out) *out = at.tv_sec;
    return at.tv_sec;
}
