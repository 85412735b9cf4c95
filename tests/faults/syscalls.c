/* System calls of this process, one by one: counted, ended by a kill, refused with an error, or recorded.

   A seccomp filter makes the kernel turn each call into a SIGSYS, whose handler decides, and makes the call itself by the
   one instruction that the filter lets pass. So every call is seen, of whatever library, also between two lines of
   Python; strace would see the same, for a hundred times the cost. Calls of processes and memory pass unseen: the C library
   makes some of them while it blocks all signals.

   Handlers use no memory but their own, and call nothing of the C library. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

enum mode { OFF, COUNT, KILL, KILL_HALF, FAIL_ONE, FAIL_FROM, RECORD };
enum kind { READS = 1, CHANGES = 2, OPENS = 4, OTHERS = 8, STREAMS = 16 };

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
__asm__(".pushsection .text\n.balign 64\n.globl trap_call\n.hidden trap_call\n.type trap_call,@function\ntrap_call:\n"
        "mov %rdi,%rax\nmov %rsi,%rdi\nmov %rdx,%rsi\nmov %rcx,%rdx\nmov %r8,%r10\nmov %r9,%r8\nmov 8(%rsp),%r9\n"
        "syscall\nret\n.balign 64\n.popsection\n");
#define NUMBER(c) ((c)->uc_mcontext.gregs[REG_RAX])
#define RESULT(c) ((c)->uc_mcontext.gregs[REG_RAX])
static const int argument_registers[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
#define ARGUMENT(c, n) ((long)(c)->uc_mcontext.gregs[argument_registers[n]])
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
__asm__(".pushsection .text\n.balign 64\n.globl trap_call\n.hidden trap_call\n.type trap_call,%function\ntrap_call:\n"
        "mov x8,x0\nmov x0,x1\nmov x1,x2\nmov x2,x3\nmov x3,x4\nmov x4,x5\nmov x5,x6\nsvc #0\nret\n.balign 64\n"
        ".popsection\n");
#define RESULT(c) ((c)->uc_mcontext.regs[0])
#define ARGUMENT(c, n) ((long)(c)->uc_mcontext.regs[n])
#else
#error "no such machine"
#endif

long trap_call(long number, long a, long b, long c, long d, long e, long f);
#define CALL(n, a, b, c, d, e, f) \
    trap_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static struct {
    volatile int mode;
    int kinds, error, log;
    long pid;
    volatile long count, at;
    volatile long number_hit;
} plan = {.log = -1};

/* Kinds of calls */

static int kind_of(long number, const long *a) {
    switch (number) {
#ifdef __NR_open
    case __NR_open: return a[1] & (O_CREAT | O_TRUNC) ? OPENS | CHANGES : OPENS;
    case __NR_creat: return OPENS | CHANGES;
    case __NR_rename: case __NR_unlink: case __NR_mkdir: case __NR_rmdir: case __NR_link: case __NR_symlink:
    case __NR_chmod: case __NR_chown: case __NR_lchown:
        return CHANGES;
    case __NR_stat: case __NR_lstat: case __NR_access: case __NR_readlink: case __NR_getdents:
        return READS;
    case __NR_pipe: case __NR_epoll_create: case __NR_inotify_init: case __NR_dup2:
        return OPENS;
#endif
    case __NR_openat: return a[2] & (O_CREAT | O_TRUNC) ? OPENS | CHANGES : OPENS;
    case __NR_write: case __NR_writev: return a[0] < 3 ? STREAMS : CHANGES;
    case __NR_pwrite64: case __NR_pwritev: case __NR_pwritev2:
    case __NR_fsync: case __NR_fdatasync: case __NR_msync: case __NR_sync_file_range:
    case __NR_ftruncate: case __NR_truncate: case __NR_fallocate: case __NR_copy_file_range: case __NR_sendfile:
    case __NR_renameat2: case __NR_unlinkat: case __NR_mkdirat: case __NR_linkat: case __NR_symlinkat:
    case __NR_fchmod: case __NR_fchmodat: case __NR_fchown: case __NR_fchownat:
#ifdef __NR_renameat
    case __NR_renameat:
#endif
        return CHANGES;
    case __NR_read: case __NR_readv: return a[0] < 3 ? STREAMS : READS;
    case __NR_pread64: case __NR_preadv: case __NR_preadv2: case __NR_lseek:
    case __NR_fstat: case __NR_newfstatat: case __NR_statx: case __NR_statfs: case __NR_fstatfs:
    case __NR_faccessat: case __NR_readlinkat: case __NR_getdents64: case __NR_flock:
        return a[0] >= 0 && a[0] < 3 && number != __NR_statfs ? STREAMS : READS;
    case __NR_mmap: return (int)a[4] >= 0 ? READS : 0;
    case __NR_dup: case __NR_dup3: case __NR_pipe2: case __NR_socket: case __NR_socketpair: case __NR_epoll_create1:
    case __NR_inotify_init1: case __NR_inotify_add_watch: case __NR_memfd_create: case __NR_pidfd_open:
    case __NR_eventfd2:
        return OPENS;
    case __NR_fcntl:
        switch (a[1]) {
        case F_GETLK: case F_SETLK: case F_SETLKW: case F_OFD_GETLK: case F_OFD_SETLK: case F_OFD_SETLKW: return READS;
        case F_DUPFD: case F_DUPFD_CLOEXEC: return OPENS;
        default: return OTHERS;
        }
    default:
        return OTHERS;
    }
}

/* The record of calls: a header of eight numbers, then the bytes of data and paths */

struct record {
    uint64_t kind, inode, offset, length, flags, first, second, result;
};

static void put(struct iovec *parts, int count) {
    long total = 0, written;
    for (int i = 0; i < count; i++) total += parts[i].iov_len;
    written = CALL(__NR_writev, plan.log, parts, count, 0, 0, 0);
    if (written != total) CALL(__NR_kill, plan.pid, SIGKILL, 0, 0, 0, 0); /* better none than a wrong one */
}

static uint64_t inode_of(long descriptor) {
    struct stat status;
    if (CALL(__NR_fstat, descriptor, &status, 0, 0, 0, 0) < 0) return 0;
    return (uint64_t)status.st_dev * 0x9E3779B97F4A7C15u ^ (uint64_t)status.st_ino;
}

static int is_synchronous(long descriptor) {
    return (CALL(__NR_fcntl, descriptor, F_GETFL, 0, 0, 0, 0) & O_DSYNC) != 0;
}

/* The path of a call, absolute: the place of the directory's descriptor before a relative one. */
static size_t full_path(long directory, const char *path, char *out, size_t room) {
    size_t used = 0, more = 0;
    if (path[0] != '/') {
        char link[32] = "/proc/self/cwd";
        if ((int)directory != AT_FDCWD) {
            char digits[12];
            int n = 0, at = 14;
            memcpy(link, "/proc/self/fd/", 14);
            for (long left = directory; left || !n; left /= 10) digits[n++] = (char)('0' + left % 10);
            while (n) link[at++] = digits[--n];
            link[at] = 0;
        }
        long got = CALL(__NR_readlinkat, AT_FDCWD, link, out, room - 1, 0, 0);
        used = got > 0 ? (size_t)got : 0;
        out[used++] = '/';
    }
    while (path[more] && used + more < room) { out[used + more] = path[more]; more++; }
    return used + more;
}

static void record_paths(char kind, long result, uint64_t inode, long flags, long at, const char *path, long to_at,
                         const char *to) {
    char first[4096], second[4096];
    struct record r = {.kind = (uint64_t)kind, .inode = inode, .flags = (uint64_t)flags, .result = (uint64_t)result};
    r.first = full_path(at, path, first, sizeof first);
    r.second = to ? full_path(to_at, to, second, sizeof second) : 0;
    struct iovec parts[] = {{&r, sizeof r}, {first, r.first}, {second, r.second}};
    put(parts, 3);
}

static void record_write(long result, long descriptor, uint64_t offset, const struct iovec *data, long count,
                         int synchronous) {
    struct iovec parts[1 + 64];
    struct record r = {.kind = 'W', .inode = inode_of(descriptor), .offset = offset, .length = (uint64_t)result,
                       .flags = (uint64_t)synchronous, .result = (uint64_t)result};
    uint64_t left = (uint64_t)result;
    int used = 1;
    parts[0] = (struct iovec){&r, sizeof r};
    for (long i = 0; i < count && left && used < 65; i++) {
        size_t length = data[i].iov_len < left ? data[i].iov_len : left;
        parts[used++] = (struct iovec){data[i].iov_base, length};
        left -= length;
    }
    put(parts, used);
}

static void record_numbers(char kind, long result, long descriptor, uint64_t offset, uint64_t flags) {
    struct record r = {.kind = (uint64_t)kind, .inode = inode_of(descriptor), .offset = offset, .flags = flags,
                       .result = (uint64_t)result};
    struct iovec part = {&r, sizeof r};
    put(&part, 1);
}

static long make(long number, const long *a) { return CALL(number, a[0], a[1], a[2], a[3], a[4], a[5]); }

static long make_recorded(long number, const long *a) {
    struct iovec one;
    long before = 0, result;
    if (number == __NR_write || number == __NR_writev) before = CALL(__NR_lseek, a[0], 0, SEEK_CUR, 0, 0, 0);
    result = make(number, a);
    if (result < 0) return result;
    switch (number) {
    case __NR_write:
        if (a[0] < 3) break;
        one = (struct iovec){(void *)a[1], (size_t)a[2]};
        record_write(result, a[0], (uint64_t)before, &one, 1, is_synchronous(a[0]));
        break;
    case __NR_pwrite64:
        one = (struct iovec){(void *)a[1], (size_t)a[2]};
        record_write(result, a[0], (uint64_t)a[3], &one, 1, is_synchronous(a[0]));
        break;
    case __NR_writev:
        if (a[0] < 3) break;
        record_write(result, a[0], (uint64_t)before, (struct iovec *)a[1], a[2], is_synchronous(a[0]));
        break;
    case __NR_pwritev: case __NR_pwritev2:
        record_write(result, a[0], (uint64_t)a[3], (struct iovec *)a[1], a[2], is_synchronous(a[0]));
        break;
    case __NR_ftruncate: record_numbers('T', result, a[0], (uint64_t)a[1], 0); break;
    case __NR_fallocate: record_numbers('A', result, a[0], (uint64_t)(a[2] + a[3]), (uint64_t)a[1]); break;
    case __NR_fsync: case __NR_fdatasync: record_numbers('S', result, a[0], 0, number == __NR_fsync); break;
    case __NR_mmap:
        if ((int)a[4] >= 0 && (a[3] & MAP_SHARED) && (a[2] & PROT_WRITE)) record_numbers('P', 0, a[4], 0, 0);
        break;
    case __NR_openat: record_paths('O', 0, inode_of(result), a[2], a[0], (char *)a[1], 0, 0); break;
    case __NR_mkdirat: record_paths('D', 0, 0, 0, a[0], (char *)a[1], 0, 0); break;
    case __NR_unlinkat: record_paths('U', 0, 0, a[2] & AT_REMOVEDIR, a[0], (char *)a[1], 0, 0); break;
    case __NR_renameat2: record_paths('R', 0, 0, a[4], a[0], (char *)a[1], a[2], (char *)a[3]); break;
#ifdef __NR_renameat
    case __NR_renameat: record_paths('R', 0, 0, 0, a[0], (char *)a[1], a[2], (char *)a[3]); break;
#endif
    case __NR_linkat: record_paths('L', 0, 0, 0, a[0], (char *)a[1], a[2], (char *)a[3]); break;
#ifdef __NR_open
    case __NR_open: record_paths('O', 0, inode_of(result), a[1], AT_FDCWD, (char *)a[0], 0, 0); break;
    case __NR_mkdir: record_paths('D', 0, 0, 0, AT_FDCWD, (char *)a[0], 0, 0); break;
    case __NR_rmdir: record_paths('U', 0, 0, AT_REMOVEDIR, AT_FDCWD, (char *)a[0], 0, 0); break;
    case __NR_unlink: record_paths('U', 0, 0, 0, AT_FDCWD, (char *)a[0], 0, 0); break;
    case __NR_rename: record_paths('R', 0, 0, 0, AT_FDCWD, (char *)a[0], AT_FDCWD, (char *)a[1]); break;
    case __NR_link: record_paths('L', 0, 0, 0, AT_FDCWD, (char *)a[0], AT_FDCWD, (char *)a[1]); break;
    case __NR_creat: case __NR_symlink:
#endif
    case __NR_copy_file_range: case __NR_sendfile: case __NR_truncate: case __NR_symlinkat:
        record_numbers('?', number, a[0], 0, 0);
        break;
    }
    return result;
}

/* Half of a write, as a process that is killed in the middle of it leaves behind. */
static void make_half(long number, const long *a) {
    long b[6];
    memcpy(b, a, sizeof b);
    if (number == __NR_write || number == __NR_pwrite64) b[2] /= 2;
    else if ((number == __NR_pwritev || number == __NR_writev || number == __NR_pwritev2) && a[2] > 1) b[2] /= 2;
    else return;
    make(number, b);
}

static long decide(long number, const long *a) {
    int mode = plan.mode;
    if (mode == OFF || CALL(__NR_getpid, 0, 0, 0, 0, 0, 0) != plan.pid) return make(number, a);
    if (mode == RECORD) return make_recorded(number, a);
    if (!(kind_of(number, a) & plan.kinds)) return make(number, a);
    long turn = __atomic_add_fetch(&plan.count, 1, __ATOMIC_SEQ_CST);
    if (mode == COUNT || turn < plan.at || (turn > plan.at && mode != FAIL_FROM)) return make(number, a);
    plan.number_hit = plan.number_hit ? plan.number_hit : number + 1;
    if (mode == FAIL_ONE || mode == FAIL_FROM) return -plan.error;
    if (mode == KILL_HALF) make_half(number, a);
    CALL(__NR_kill, plan.pid, SIGKILL, 0, 0, 0, 0);
    return 0;
}

static void on_call(int signal, siginfo_t *info, void *at) {
    ucontext_t *context = at;
    long arguments[6];
    (void)signal;
    for (int n = 0; n < 6; n++) arguments[n] = ARGUMENT(context, n);
    RESULT(context) = decide(info->si_syscall, arguments);
}

/* For Python */

int trap_install(void) {
    static const int pass[] = {
        __NR_rt_sigreturn, __NR_rt_sigprocmask, __NR_rt_sigaction, __NR_clone, __NR_clone3, __NR_execve, __NR_exit,
        __NR_exit_group, __NR_futex, __NR_set_robust_list, __NR_rseq, __NR_mprotect, __NR_madvise, __NR_munmap,
        __NR_brk, __NR_mremap, __NR_set_tid_address, __NR_gettid, __NR_getpid, __NR_tgkill, __NR_sched_yield,
        __NR_wait4, __NR_waitid, __NR_close, __NR_prctl, __NR_prlimit64, __NR_sigaltstack, __NR_clock_nanosleep,
#ifdef __NR_fork
        __NR_fork, __NR_vfork, __NR_arch_prctl,
#endif
    };
    enum { PASSED = sizeof pass / sizeof *pass };
    struct sock_filter code[16 + PASSED];
    uint64_t start = (uint64_t)(uintptr_t)trap_call;
    unsigned short n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, instruction_pointer) + 4);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(start >> 32), 0, 4);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, instruction_pointer));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)start, 0, 2);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)start + 64, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < PASSED; i++)
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)pass[i], PASSED - i, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = n, .filter = code};
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    if (sigaction(SIGSYS, &action, 0)) return -errno;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -errno;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return -errno;
    return 0;
}

void trap_arm(int mode, int kinds, long at, int error, int log) {
    plan.mode = OFF;
    plan.pid = CALL(__NR_getpid, 0, 0, 0, 0, 0, 0);
    plan.kinds = kinds;
    plan.error = error;
    plan.log = log;
    plan.count = plan.number_hit = 0;
    plan.at = at;
    plan.mode = mode;
}

void trap_disarm(void) { plan.mode = OFF; }

long trap_count(void) { return plan.count; }

long trap_hit(void) { return plan.number_hit - 1; }

/* A line of the workload's own in the record: what has been acknowledged. */
void trap_mark(const char *text, long length) {
    struct record r = {.kind = 'M', .first = (uint64_t)length};
    struct iovec parts[] = {{&r, sizeof r}, {(void *)text, (size_t)length}};
    put(parts, 2);
}

/* The bytes of a mapped file as they are now: the kernel may write any of them back at any time. */
void trap_mapped(long descriptor, const char *bytes, long length) {
    struct record r = {.kind = 'W', .inode = inode_of(descriptor), .length = (uint64_t)length,
                       .result = (uint64_t)length};
    struct iovec parts[] = {{&r, sizeof r}, {(void *)bytes, (size_t)length}};
    put(parts, 2);
}
