/* A disk of which one call fails, and a wall clock that stands elsewhere: for a process that has this as LD_PRELOAD.

   Nothing is changed before the process asks for it by `fault_arm` or `clock_step`. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* As `Call` and `How` of failing.py number them. */
enum { OPEN, CREATE, READ, WRITE, SYNC, NAME, REMOVE, FOLDER, LOOK, CALLS };
enum { REFUSED, UNHEARD, SHORT };

#define FILES 65536
#define STEPS 16

static char ours[FILES]; /* Open files and folders below the folder. */
static char folder[PATH_MAX];
static size_t length;
static int call = -1, number, how;
static atomic_long left;

static int below(const char *path) {
    return length && path && !strncmp(path, folder, length) && (!path[length] || path[length] == '/');
}

static int is_ours(int fd) { return fd >= 0 && fd < FILES && ours[fd]; }

static int below_at(int at, const char *path) {
    return path && path[0] == '/' ? below(path) : at != AT_FDCWD && is_ours(at);
}

static const char *path_of(int fd) {
    static char path[PATH_MAX];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long size = syscall(SYS_readlink, link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = 0;
    return path;
}

static int noted(int fd, int mine) {
    if (fd >= 0 && fd < FILES) ours[fd] = mine;
    return fd;
}

/* Count a call of the kind that is waited for; say whether it is the one. */
static int strikes(int kind, int mine, const char *name, const char *path) {
    if (kind != call || !mine || atomic_fetch_sub(&left, 1) != 1) return 0;
    char said[PATH_MAX + 64];
    int size = snprintf(said, sizeof said, "fault: %s %s\n", name, path);
    syscall(SYS_write, 2, said, size);
    return 1;
}

static int strikes_held(int kind, int fd, const char *name) {
    return kind == call && is_ours(fd) && strikes(kind, 1, name, path_of(fd));
}

/* The next call of a kind but `skipped` ones fails, once. */
void fault_arm(const char *path, int kind, long skipped, int with, int in_what_way) {
    call = -1;
    strncpy(folder, path, sizeof folder - 1);
    length = strlen(folder);
    number = with, how = in_what_way;
    atomic_store(&left, skipped + 1);
    call = kind;
}

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })
/* One that is done although it is told as failed: an answer that was lost. */
#define FAIL(value, done) do { if (how == UNHEARD) (void)done; errno = number; return value; } while (0)
#define PATHED(kind, value, type, name, path, parameters, ...) \
    type name parameters { \
        if (strikes(kind, below(path), #name, path)) FAIL(value, REAL(name)(__VA_ARGS__)); \
        return REAL(name)(__VA_ARGS__); }
#define PATHED_AT(kind, type, name, at, path, parameters, ...) \
    type name parameters { \
        if (strikes(kind, below_at(at, path), #name, path)) FAIL(-1, REAL(name)(__VA_ARGS__)); \
        return REAL(name)(__VA_ARGS__); }
#define HELD(kind, type, name, fd, parameters, ...) \
    type name parameters { \
        if (strikes_held(kind, fd, #name)) FAIL(-1, REAL(name)(__VA_ARGS__)); \
        return REAL(name)(__VA_ARGS__); }

#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if (strikes(flags & O_CREAT ? CREATE : OPEN, below(path), #name, path)) { errno = number; return -1; } \
        return noted(REAL(name)(path, flags, mode), below(path)); }
#define OPENS_AT(name) \
    int name(int at, const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        int mine = below_at(at, path); \
        if (strikes(flags & O_CREAT ? CREATE : OPEN, mine, #name, path)) { errno = number; return -1; } \
        return noted(REAL(name)(at, path, flags, mode), mine); }

OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)

int close(int fd) {
    noted(fd, 0);
    return REAL(close)(fd);
}

DIR *opendir(const char *path) {
    if (strikes(OPEN, below(path), "opendir", path)) { errno = number; return NULL; }
    DIR *made = REAL(opendir)(path);
    if (made) noted(dirfd(made), below(path));
    return made;
}

HELD(READ, ssize_t, read, fd, (int fd, void *to, size_t size), fd, to, size)
HELD(READ, ssize_t, pread, fd, (int fd, void *to, size_t size, off_t at), fd, to, size, at)
HELD(READ, ssize_t, pread64, fd, (int fd, void *to, size_t size, off64_t at), fd, to, size, at)

/* A short write is no failure: the caller has to write the rest. */
#define WRITES(name, parameters, whole, half) \
    ssize_t name parameters { \
        if (size > 1 && strikes_held(WRITE, fd, #name)) { \
            if (how == SHORT) return half; \
            errno = number; return -1; } \
        return whole; }
WRITES(write, (int fd, const void *from, size_t size), REAL(write)(fd, from, size), REAL(write)(fd, from, size / 2))
WRITES(pwrite, (int fd, const void *from, size_t size, off_t at), REAL(pwrite)(fd, from, size, at),
       REAL(pwrite)(fd, from, size / 2, at))
WRITES(pwrite64, (int fd, const void *from, size_t size, off64_t at), REAL(pwrite64)(fd, from, size, at),
       REAL(pwrite64)(fd, from, size / 2, at))
WRITES(writev, (int fd, const struct iovec *from, int size), REAL(writev)(fd, from, size),
       REAL(writev)(fd, from, size / 2))
HELD(WRITE, int, ftruncate, fd, (int fd, off_t size), fd, size)
HELD(WRITE, int, ftruncate64, fd, (int fd, off64_t size), fd, size)
HELD(SYNC, int, fsync, fd, (int fd), fd)
HELD(SYNC, int, fdatasync, fd, (int fd), fd)
HELD(SYNC, int, syncfs, fd, (int fd), fd)

#define NAMES(name) \
    int name(const char *path, const char *to) { \
        if (strikes(NAME, below(path) || below(to), #name, to)) FAIL(-1, REAL(name)(path, to)); \
        return REAL(name)(path, to); }
NAMES(rename)
NAMES(link)
NAMES(symlink)
int renameat(int at, const char *path, int by, const char *to) {
    if (strikes(NAME, below_at(at, path) || below_at(by, to), "renameat", to)) FAIL(-1, REAL(renameat)(at, path, by, to));
    return REAL(renameat)(at, path, by, to);
}
int linkat(int at, const char *path, int by, const char *to, int flags) {
    int mine = below_at(at, path) || below_at(by, to);
    if (strikes(NAME, mine, "linkat", to)) FAIL(-1, REAL(linkat)(at, path, by, to, flags));
    return REAL(linkat)(at, path, by, to, flags);
}

PATHED(REMOVE, -1, int, unlink, path, (const char *path), path)
PATHED(REMOVE, -1, int, rmdir, path, (const char *path), path)
PATHED_AT(REMOVE, int, unlinkat, at, path, (int at, const char *path, int flags), at, path, flags)
PATHED(FOLDER, -1, int, mkdir, path, (const char *path, mode_t mode), path, mode)
PATHED_AT(FOLDER, int, mkdirat, at, path, (int at, const char *path, mode_t mode), at, path, mode)
PATHED(LOOK, -1, int, stat, path, (const char *path, struct stat *to), path, to)
PATHED(LOOK, -1, int, stat64, path, (const char *path, struct stat64 *to), path, to)
PATHED(LOOK, -1, int, lstat, path, (const char *path, struct stat *to), path, to)
PATHED(LOOK, -1, int, lstat64, path, (const char *path, struct stat64 *to), path, to)
PATHED_AT(LOOK, int, fstatat, at, path, (int at, const char *path, struct stat *to, int flags), at, path, to, flags)
PATHED_AT(LOOK, int, fstatat64, at, path, (int at, const char *path, struct stat64 *to, int flags), at, path, to, flags)
PATHED_AT(LOOK, int, statx, at, path, (int at, const char *path, int flags, unsigned mask, struct statx *to), at, path,
          flags, mask, to)
PATHED(LOOK, -1, int, access, path, (const char *path, int mode), path, mode)
PATHED_AT(LOOK, int, faccessat, at, path, (int at, const char *path, int mode, int flags), at, path, mode, flags)
HELD(LOOK, int, fstat, fd, (int fd, struct stat *to), fd, to)
HELD(LOOK, int, fstat64, fd, (int fd, struct stat64 *to), fd, to)
PATHED_AT(WRITE, int, utimensat, at, path, (int at, const char *path, const struct timespec to[2], int flags), at, path,
          to, flags)

/* What programs that were built for an older C library call. */
extern int __xstat(int, const char *, struct stat *), __lxstat(int, const char *, struct stat *);
extern int __xstat64(int, const char *, struct stat64 *), __lxstat64(int, const char *, struct stat64 *);
extern int __fxstat(int, int, struct stat *), __fxstat64(int, int, struct stat64 *);
PATHED(LOOK, -1, int, __xstat, path, (int version, const char *path, struct stat *to), version, path, to)
PATHED(LOOK, -1, int, __lxstat, path, (int version, const char *path, struct stat *to), version, path, to)
PATHED(LOOK, -1, int, __xstat64, path, (int version, const char *path, struct stat64 *to), version, path, to)
PATHED(LOOK, -1, int, __lxstat64, path, (int version, const char *path, struct stat64 *to), version, path, to)
HELD(LOOK, int, __fxstat, fd, (int version, int fd, struct stat *to), version, fd, to)
HELD(LOOK, int, __fxstat64, fd, (int version, int fd, struct stat64 *to), version, fd, to)

/* The wall clock: steps that come after so many looks at it. */
static long steps_at[STEPS];
static long long steps_to[STEPS];
static atomic_int steps_known;
static atomic_long looks;
static atomic_llong shift;

/* Have the clock stand `nanoseconds` beside the machine's once it has been looked at `looked` times more. */
void clock_step(long looked, long long nanoseconds) {
    int at = atomic_load(&steps_known);
    if (at == STEPS) return;
    steps_at[at] = atomic_load(&looks) + looked, steps_to[at] = nanoseconds;
    atomic_store(&steps_known, at + 1);
}

long long clock_shift(void) { return atomic_load(&shift); }
long clock_looks(void) { return atomic_load(&looks); }

static long long shifted(void) {
    long seen = atomic_fetch_add(&looks, 1);
    for (int at = 0, known = atomic_load(&steps_known); at < known; at++)
        if (steps_at[at] == seen) atomic_store(&shift, steps_to[at]);
    return atomic_load(&shift);
}

#define SECOND 1000000000LL
int clock_gettime(clockid_t id, struct timespec *to) {
    int code = syscall(SYS_clock_gettime, id, to);
    if (code || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return code;
    long long now = to->tv_sec * SECOND + to->tv_nsec + shifted();
    to->tv_sec = now / SECOND, to->tv_nsec = now % SECOND;
    return 0;
}
int gettimeofday(struct timeval *to, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    to->tv_sec = now.tv_sec, to->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
