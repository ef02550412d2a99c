/* A disk that fails: calls of the file system below a folder end with an errno.

   LD_PRELOAD=this FAULTS=file, where the file says `errno folder`; without it, or while it is empty, nothing fails. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fault(const char *path) {
    const char *file = getenv("FAULTS");
    char said[PATH_MAX + 16];
    if (!file || !path || path[0] != '/') return 0;
    int handle = syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
    if (handle < 0) return 0;
    long size = syscall(SYS_read, handle, said, sizeof said - 1);
    syscall(SYS_close, handle);
    if (size <= 0) return 0;
    said[size] = 0;
    char *folder;
    int number = strtol(said, &folder, 10);
    while (*folder == ' ') folder++;
    folder[strcspn(folder, "\n")] = 0;
    size_t length = strlen(folder);
    if (!number || !length || strncmp(path, folder, length)) return 0;
    if (path[length] && path[length] != '/') return 0;
    errno = number;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAILS(value, type, name, path, parameters, ...) \
    type name parameters { return fault(path) ? value : REAL(name)(__VA_ARGS__); }
#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        return fault(path) ? -1 : REAL(name)(path, flags, mode); }
#define OPENS_AT(name) \
    int name(int at, const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        return fault(path) ? -1 : REAL(name)(at, path, flags, mode); }

OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)
FAILS(-1, int, stat, path, (const char *path, struct stat *to), path, to)
FAILS(-1, int, stat64, path, (const char *path, struct stat64 *to), path, to)
FAILS(-1, int, lstat, path, (const char *path, struct stat *to), path, to)
FAILS(-1, int, lstat64, path, (const char *path, struct stat64 *to), path, to)
FAILS(-1, int, fstatat, path, (int at, const char *path, struct stat *to, int flags), at, path, to, flags)
FAILS(-1, int, fstatat64, path, (int at, const char *path, struct stat64 *to, int flags), at, path, to, flags)
FAILS(-1, int, statx, path, (int at, const char *path, int flags, unsigned mask, struct statx *to), at, path, flags,
      mask, to)
FAILS(-1, int, access, path, (const char *path, int mode), path, mode)
FAILS(-1, int, faccessat, path, (int at, const char *path, int mode, int flags), at, path, mode, flags)
FAILS(-1, int, mkdir, path, (const char *path, mode_t mode), path, mode)
FAILS(-1, int, mkdirat, path, (int at, const char *path, mode_t mode), at, path, mode)
FAILS(-1, int, rmdir, path, (const char *path), path)
FAILS(-1, int, unlink, path, (const char *path), path)
FAILS(-1, int, unlinkat, path, (int at, const char *path, int flags), at, path, flags)
FAILS(NULL, DIR *, opendir, path, (const char *path), path)
FAILS(-1, ssize_t, readlink, path, (const char *path, char *to, size_t size), path, to, size)

int rename(const char *path, const char *to) { return fault(path) || fault(to) ? -1 : REAL(rename)(path, to); }
int renameat(int at, const char *path, int by, const char *to) {
    return fault(path) || fault(to) ? -1 : REAL(renameat)(at, path, by, to);
}
int link(const char *path, const char *to) { return fault(path) || fault(to) ? -1 : REAL(link)(path, to); }
int linkat(int at, const char *path, int by, const char *to, int flags) {
    return fault(path) || fault(to) ? -1 : REAL(linkat)(at, path, by, to, flags);
}
