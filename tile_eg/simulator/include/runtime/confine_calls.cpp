// What a confined process may ask of the machine's kernel: a seccomp filter. What is listed is allowed; everything else is trapped,
// and told by `refuse.cpp`. A call that is newer than the list does not exist, so that libraries take an older one.
#include "confine.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000U
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41  // names of memory, which the C library gives
#endif

namespace tile_sim
{
namespace
{

#ifdef __x86_64__
constexpr uint32_t architecture = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t architecture = AUDIT_ARCH_AARCH64;
#endif
constexpr uint32_t first_unknown = 448;  // process_mrelease; those of x32 lie above it too
constexpr uint32_t new_kinds = CLONE_VFORK | CLONE_PTRACE | CLONE_UNTRACED | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                               CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

constexpr int allowed[] = {
    __NR_read, __NR_write, __NR_readv, __NR_writev, __NR_pread64, __NR_pwrite64, __NR_preadv, __NR_pwritev, __NR_lseek, __NR_close,
    __NR_dup, __NR_dup3, __NR_pipe2, __NR_flock, __NR_fsync, __NR_fdatasync, __NR_ftruncate, __NR_fallocate, __NR_fadvise64,
    __NR_sendfile, __NR_copy_file_range, __NR_splice, __NR_fstat, __NR_newfstatat, __NR_statx, __NR_statfs, __NR_fstatfs, __NR_faccessat,
    __NR_readlinkat, __NR_getdents64, __NR_getcwd, __NR_chdir, __NR_fchdir, __NR_umask, __NR_ppoll, __NR_pselect6,
    __NR_epoll_create1, __NR_epoll_ctl, __NR_epoll_pwait, __NR_eventfd2, __NR_timerfd_create, __NR_timerfd_settime, __NR_timerfd_gettime,
    // memory
    __NR_brk, __NR_mmap, __NR_munmap, __NR_mremap, __NR_mprotect, __NR_madvise, __NR_msync, __NR_mincore, __NR_mlock, __NR_munlock,
    __NR_membarrier, __NR_get_mempolicy, __NR_mbind, __NR_set_mempolicy,
    // threads, signals, time
    __NR_futex, __NR_set_robust_list, __NR_get_robust_list, __NR_set_tid_address, __NR_exit, __NR_exit_group, __NR_wait4, __NR_waitid,
    __NR_rt_sigreturn, __NR_rt_sigpending, __NR_rt_sigsuspend, __NR_rt_sigtimedwait, __NR_sigaltstack,
    __NR_restart_syscall, __NR_sched_yield, __NR_sched_getaffinity, __NR_sched_getparam,
    __NR_sched_getscheduler, __NR_getcpu, __NR_getpriority, __NR_nanosleep, __NR_clock_nanosleep, __NR_clock_gettime,
    __NR_clock_getres, __NR_gettimeofday, __NR_times, __NR_getitimer, __NR_setitimer, __NR_timer_create, __NR_timer_settime, __NR_timer_gettime,
    __NR_timer_delete, __NR_timer_getoverrun,
    // who and what this is
    __NR_getpid, __NR_getppid, __NR_gettid, __NR_getuid, __NR_geteuid, __NR_getgid, __NR_getegid, __NR_getgroups, __NR_getpgid,
    __NR_getsid, __NR_getrusage, __NR_getrandom, __NR_uname, __NR_sysinfo,
#ifdef __NR_rseq
    __NR_rseq,
#endif
#ifdef __NR_faccessat2
    __NR_faccessat2,
#endif
#ifdef __NR_close_range
    __NR_close_range,
#endif
#ifdef __x86_64__
    __NR_stat, __NR_lstat, __NR_access, __NR_readlink, __NR_getdents, __NR_dup2, __NR_pipe, __NR_poll, __NR_select, __NR_epoll_wait,
    __NR_epoll_create, __NR_eventfd, __NR_getpgrp, __NR_getrlimit, __NR_alarm, __NR_pause, __NR_time, __NR_arch_prctl,
#else
    __NR_getrlimit,
#endif
};

// Changes of folders: `refuse.cpp` repeats them with the pass, and tells where the answer is no.
constexpr int of_files[] = {__NR_mkdirat, __NR_unlinkat, __NR_renameat2, __NR_truncate,
#ifdef __NR_renameat
                            __NR_renameat,
#endif
};

class Filter
{
public:
    using Block = std::vector<sock_filter>;
    explicit Filter(uint64_t pass) : pass_(pass) {}

    static sock_filter end(uint32_t action) { return {BPF_RET | BPF_K, 0, 0, action}; }
    static sock_filter load(size_t offset) { return {BPF_LD | BPF_W | BPF_ABS, 0, 0, uint32_t(offset)}; }
    static sock_filter low(int argument) { return load(offsetof(seccomp_data, args) + 8 * size_t(argument)); }  // both are little-endian
    static sock_filter high(int argument) { return load(offsetof(seccomp_data, args) + 8 * size_t(argument) + 4); }
    static sock_filter skip(uint32_t count) { return {BPF_JMP | BPF_JA, 0, 0, count}; }
    // Goes on where it holds, else skips so many.
    static sock_filter where_equal(uint32_t value, uint8_t skipped) { return {BPF_JMP | BPF_JEQ | BPF_K, 0, skipped, value}; }
    static sock_filter where_any(uint32_t bits, uint8_t skipped) { return {BPF_JMP | BPF_JSET | BPF_K, 0, skipped, bits}; }
    static sock_filter where_from(uint32_t value, uint8_t skipped) { return {BPF_JMP | BPF_JGE | BPF_K, 0, skipped, value}; }

    Block with_pass() const
    {
        return {low(5), where_equal(uint32_t(pass_), 3), high(5), where_equal(uint32_t(pass_ >> 32), 1), end(SECCOMP_RET_ALLOW), end(SECCOMP_RET_TRAP)};
    }
    void begin()
    {
        add({load(offsetof(seccomp_data, arch)), where_equal(architecture, 1), skip(1), end(SECCOMP_RET_KILL_PROCESS)});
        add({load(offsetof(seccomp_data, nr)), where_from(first_unknown, 1), end(SECCOMP_RET_ERRNO | ENOSYS)});
    }
    void add(const Block& block) { code_.insert(code_.end(), block.begin(), block.end()); }
    // Every block ends the filter.
    void on(int call, const Block& block)
    {
        code_.push_back(where_equal(uint32_t(call), uint8_t(block.size())));
        add(block);
    }
    void on_argument(int call, int argument, std::initializer_list<uint32_t> values, const Block& then, const Block& otherwise)
    {
        Block block{low(argument)};
        for (uint32_t value : values) {
            block.push_back(where_equal(value, uint8_t(then.size())));
            block.insert(block.end(), then.begin(), then.end());
        }
        block.insert(block.end(), otherwise.begin(), otherwise.end());
        on(call, block);
    }
    bool install()
    {
        add({end(SECCOMP_RET_TRAP)});
        const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
        return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    }

private:
    uint64_t pass_;
    Block code_;
};

using Block = Filter::Block;

Block joined(Block first, const Block& second)
{
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

// Opening a file only to read and cutting it off is a change that older versions of Landlock do not see.
Block opening(const Filter& filter, int flags, bool writes_files)
{
    const Block trap{Filter::end(SECCOMP_RET_TRAP)};
    if (!writes_files) return joined({Filter::low(flags), Filter::where_any(O_ACCMODE | O_CREAT | O_TRUNC, 1)}, joined(trap, filter.with_pass()));
    return joined({Filter::low(flags), Filter::where_any(O_TRUNC, 3), Filter::where_any(O_ACCMODE, 1), Filter::skip(1), trap[0]}, filter.with_pass());
}

void add_processes(Filter& filter, const Block& allow, const Block& trap)
{
    const Block thread = joined({Filter::low(0), Filter::where_any(new_kinds, 1), trap[0], Filter::where_any(CLONE_THREAD, 1), allow[0]}, filter.with_pass());
    filter.on(__NR_clone, thread);
    for (int call : {__NR_kill, __NR_tgkill}) filter.on_argument(call, 0, {uint32_t(getpid())}, allow, trap);
    filter.on(__NR_rt_sigprocmask, filter.with_pass());
    filter.on_argument(__NR_rt_sigaction, 0, {SIGSYS}, trap, allow);
    filter.on_argument(__NR_sched_setaffinity, 0, {0}, allow, trap);
    filter.on_argument(__NR_prlimit64, 2, {0}, allow, filter.with_pass());
    filter.on_argument(__NR_prctl, 0, {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_GET_DUMPABLE, PR_GET_SECCOMP, PR_GET_TID_ADDRESS}, allow,
                       joined({Filter::where_equal(PR_SET_PDEATHSIG, 3), Filter::low(1), Filter::where_equal(SIGKILL, 1), allow[0]}, trap));
}

void add_files(Filter& filter, bool writes_files, const Block& allow, const Block& trap)
{
    filter.on(__NR_openat, opening(filter, 2, writes_files));
    if (writes_files)
        for (int call : of_files) filter.on(call, filter.with_pass());
    filter.on(__NR_memfd_create, filter.with_pass());  // memory that no limit counts
    filter.on_argument(__NR_fcntl, 1,  // not those that name a process to be signalled
                       {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK,
                        F_OFD_SETLKW}, allow, trap);
    filter.on_argument(__NR_ioctl, 1, {TCGETS, TIOCGWINSZ, FIONREAD, FIOCLEX}, allow, trap);
}

}  // namespace

bool can_filter_calls() { return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr, 0, 0) && errno == EFAULT; }

bool confine_calls(bool writes_files, uint64_t pass)
{
    const Block allow{Filter::end(SECCOMP_RET_ALLOW)}, trap{Filter::end(SECCOMP_RET_TRAP)}, none{Filter::end(SECCOMP_RET_ERRNO | ENOSYS)};
    Filter filter(pass);
    filter.begin();
    for (int call : allowed) filter.on(call, allow);
#ifdef __NR_clone3
    filter.on(__NR_clone3, none);  // its flags lie in memory; the C library takes clone then
#endif
#ifdef __NR_openat2
    filter.on(__NR_openat2, none);
#endif
    add_processes(filter, allow, trap);
    add_files(filter, writes_files, allow, trap);
    return filter.install();
}

}  // namespace tile_sim

#endif
