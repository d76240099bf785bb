// Says what a confined process was refused, and ends it. Files come here first: the call is repeated with the pass, and what Landlock
// says of it is the answer.
#include "confine.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tile_sim
{
namespace
{

bool may_write = false;
uint64_t own_pass = 0;
int told = 2;  // where it is said; standard error of the process may be closed by then

struct Call {
    long number;
    uint64_t arguments[6];
    const char* path(int argument) const { return reinterpret_cast<const char*>(arguments[argument]); }
};

Call call_of(const siginfo_t& info, const ucontext_t& context)
{
    const auto& machine = context.uc_mcontext;
#ifdef __x86_64__
    const auto at = [&](int reg) { return uint64_t(machine.gregs[reg]); };
    return {info.si_syscall, {at(REG_RDI), at(REG_RSI), at(REG_RDX), at(REG_R10), at(REG_R8), at(REG_R9)}};
#else
    const auto& r = machine.regs;
    return {info.si_syscall, {r[0], r[1], r[2], r[3], r[4], r[5]}};
#endif
}

void give(ucontext_t& context, long result)
{
#ifdef __x86_64__
    context.uc_mcontext.gregs[REG_RAX] = result;
#else
    context.uc_mcontext.regs[0] = uint64_t(result);
#endif
}

// The calls that only x86-64 has, as those that stand for them.
Call modern(const Call& call)
{
#ifdef __x86_64__
    const auto& a = call.arguments;
    const uint64_t here = uint64_t(AT_FDCWD);
    switch (call.number) {
        case __NR_open: return {__NR_openat, {here, a[0], a[1], a[2], 0, 0}};
        case __NR_creat: return {__NR_openat, {here, a[0], O_CREAT | O_WRONLY | O_TRUNC, a[1], 0, 0}};
        case __NR_mkdir: return {__NR_mkdirat, {here, a[0], a[1], 0, 0, 0}};
        case __NR_rmdir: return {__NR_unlinkat, {here, a[0], AT_REMOVEDIR, 0, 0, 0}};
        case __NR_unlink: return {__NR_unlinkat, {here, a[0], 0, 0, 0, 0}};
        case __NR_rename: return {__NR_renameat2, {here, a[0], here, a[1], 0, 0}};
    }
#endif
#ifdef __NR_renameat
    if (call.number == __NR_renameat) return {__NR_renameat2, {call.arguments[0], call.arguments[1], call.arguments[2], call.arguments[3], 0, 0}};
#endif
    return call;
}

// The kind of a refused call; simulator/confinement.py has the words.
const char* kind_of(long number)
{
    switch (number) {
        case __NR_execve: case __NR_execveat: return "program";
        case __NR_clone: return "process";
        case __NR_socket: case __NR_socketpair: case __NR_connect: case __NR_bind: case __NR_listen: case __NR_accept: case __NR_accept4:
        case __NR_sendto: case __NR_sendmsg: case __NR_recvfrom: case __NR_recvmsg: return "network";
        case __NR_kill: case __NR_tkill: case __NR_tgkill: case __NR_rt_sigqueueinfo: case __NR_rt_tgsigqueueinfo: return "signal";
        case __NR_ptrace: case __NR_process_vm_readv: case __NR_process_vm_writev: return "trace";
        case __NR_prlimit64: case __NR_setrlimit: case __NR_rt_sigaction: case __NR_seccomp: return "limits";
        case __NR_fchmod: case __NR_fchmodat: case __NR_fchown: case __NR_fchownat: case __NR_utimensat: case __NR_linkat:
        case __NR_symlinkat: case __NR_mknodat: return "change";
#ifdef __x86_64__
        case __NR_fork: case __NR_vfork: return "process";
        case __NR_chmod: case __NR_chown: case __NR_lchown: case __NR_link: case __NR_symlink: case __NR_mknod: return "change";
#endif
    }
    return "call";
}

[[noreturn]] void refuse(const char* kind, const char* what)
{
    char message[700];
    int length = std::snprintf(message, sizeof message, "\ntile_eg refused %s %.600s\n", kind, what);
    for (int i = 1; i < length - 1; ++i)
        if (message[i] == '\n' || message[i] == '\r') message[i] = '?';
    if (length > 0 && write(told, message, size_t(length)) < 0) length = 0;
    end_refused();
}

bool is_file_call(long number)
{
    return number == __NR_openat || number == __NR_mkdirat || number == __NR_unlinkat || number == __NR_renameat2 || number == __NR_truncate;
}

bool changes(const Call& call)
{
    return call.number != __NR_openat || call.arguments[2] & (O_ACCMODE | O_CREAT | O_TRUNC);
}

bool only_cuts(const Call& call)
{
    return call.number == __NR_openat && (call.arguments[2] & O_TRUNC) && !(call.arguments[2] & O_ACCMODE);
}

long file_call(const Call& call)
{
    const auto& a = call.arguments;
    const char* const path = call.path(call.number != __NR_truncate);
    if (changes(call) && (!may_write || only_cuts(call))) refuse("write", path ? path : "");
    const long result = syscall(call.number, a[0], a[1], a[2], a[3], a[4], own_pass);
    const int error = result < 0 ? errno : 0;
    if (error == EACCES || error == EPERM || (error == EXDEV && changes(call))) refuse(changes(call) ? "write" : "read", path);
    return error ? -error : result;
}

// The signal by which this file is called stays unblocked: the C library blocks all of them while it starts a process or a thread.
long mask_call(const Call& call, ucontext_t& interrupted)
{
    uint64_t mask = 0;
    std::memcpy(&mask, &interrupted.uc_sigmask, sizeof mask);
    if (call.arguments[3] != sizeof mask) return -EINVAL;
    const uint64_t before = mask;
    if (call.arguments[1]) {
        uint64_t given = 0;
        std::memcpy(&given, call.path(1), sizeof given);
        given &= ~(uint64_t(1) << (SIGSYS - 1));
        switch (call.arguments[0]) {
            case SIG_BLOCK: mask |= given; break;
            case SIG_UNBLOCK: mask &= ~given; break;
            case SIG_SETMASK: mask = given; break;
            default: return -EINVAL;
        }
    }
    std::memcpy(&interrupted.uc_sigmask, &mask, sizeof mask);
    if (call.arguments[2]) std::memcpy(reinterpret_cast<void*>(call.arguments[2]), &before, sizeof before);
    return 0;
}

void on_refused(int, siginfo_t* info, void* context)
{
    const int error = errno;
    ucontext_t& interrupted = *static_cast<ucontext_t*>(context);
    const Call call = modern(call_of(*info, interrupted));
    if (is_file_call(call.number) || call.number == __NR_rt_sigprocmask) {
        give(interrupted, is_file_call(call.number) ? file_call(call) : mask_call(call, interrupted));
        errno = error;
        return;
    }
    const bool signals = call.number == __NR_kill || call.number == __NR_tgkill;
    if (signals && pid_t(call.arguments[0]) == getpid()) _exit(134);  // a worker's own: the filter knows the number of its parent
    char number[32];
    std::snprintf(number, sizeof number, "%ld", call.number);
    refuse(kind_of(call.number), number);
}

}  // namespace

bool install_refusals(bool writes_files, uint64_t pass)
{
    may_write = writes_files, own_pass = pass;
    told = fcntl(2, F_DUPFD_CLOEXEC, 64);
    struct sigaction action{};
    action.sa_sigaction = on_refused, action.sa_flags = SA_SIGINFO;
    return !sigaction(SIGSYS, &action, nullptr);
}

// A refused call while the signal is blocked is the end; also where the handler itself was ended that way in a worker.
void end_refused()
{
    const uint64_t blocked = uint64_t(1) << (SIGSYS - 1);
    syscall(__NR_rt_sigprocmask, SIG_BLOCK, &blocked, nullptr, sizeof blocked, 0, own_pass);
    syscall(__NR_ptrace, 0, 0, 0, 0);
    _exit(1);
}

}  // namespace tile_sim

#endif
