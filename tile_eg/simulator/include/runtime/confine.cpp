#include "confine.h"

#include <unistd.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <linux/prctl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <sched.h>

#include <stdexcept>

namespace tile_sim
{
namespace
{

bool confined = false;
uint64_t pass = 0;  // what our own calls carry in an argument that the kernel does not read, so that the filter lets them through

// Where the C library keeps the number of this thread: a child has another one.
void* thread_number()
{
    void* address = nullptr;
#ifdef PR_GET_TID_ADDRESS
    if (prctl(PR_GET_TID_ADDRESS, &address)) return nullptr;
#endif
    return address;
}

}  // namespace

std::string cannot_confine()
{
    if (!can_filter_calls()) return "the kernel of this machine has no seccomp filters: nothing is refused";
    if (landlock_version() < 1) return "the kernel of this machine has no Landlock: the files that it opens are not confined";
    return "";
}

void confine(const Grants& grants, const char* library)
{
    if (!grants.confined) return;
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    const bool writes = !grants.writes.empty();
    const bool able = !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && getrandom(&pass, sizeof pass, 0) == sizeof pass && can_filter_calls();
    if (!able) return;  // cannot_confine() says so
    confined = true;
    if (landlock_version() >= 1 && !confine_files(grants, library)) throw std::runtime_error("the files that a run may open cannot be confined");
    if (!install_refusals(writes, pass) || !confine_calls(writes, pass)) throw std::runtime_error("the system calls of a run cannot be confined");
}

pid_t fork_worker()
{
    if (!confined) return fork();
    void* const number = thread_number();
    const unsigned long flags = SIGCHLD | (number ? CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID : 0);
#ifdef __x86_64__
    return pid_t(syscall(__NR_clone, flags, 0, 0, number, 0, pass));
#else
    return pid_t(syscall(__NR_clone, flags, 0, 0, 0, number, pass));
#endif
}

FILE* worker_file()
{
    const int file = int(syscall(__NR_memfd_create, "worker", MFD_CLOEXEC, 0, 0, 0, pass));
    return file < 0 ? std::tmpfile() : fdopen(file, "w+b");
}

int set_limit(int what, const rlimit& limit) { return int(syscall(__NR_prlimit64, 0, what, &limit, nullptr, 0, pass)); }

}  // namespace tile_sim

#else

#include <sys/resource.h>

#include <cstdlib>

namespace tile_sim
{

std::string cannot_confine()
{
#ifdef __linux__
    return "confinement knows x86-64 and aarch64, and this machine is neither: nothing is refused";
#else
    return "only Linux can confine it: nothing is refused";
#endif
}

void confine(const Grants&, const char*) {}
pid_t fork_worker() { return fork(); }
FILE* worker_file() { return std::tmpfile(); }
int set_limit(int what, const rlimit& limit) { return setrlimit(what, &limit); }
void end_refused() { std::abort(); }

}  // namespace tile_sim

#endif
