#include "time_limit.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>

namespace tile_sim
{
namespace
{

double limit = 0;      // 0: none
double at_fork = 0;    // seconds used when the workers began

double used_by(int whose)
{
    rusage use{};
    getrusage(whose, &use);
    return double(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * double(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

void set_timer(double seconds)
{
    itimerval timer{};
    const double whole = std::floor(seconds = std::max(seconds, 1e-3));
    timer.it_value.tv_sec = time_t(whole), timer.it_value.tv_usec = suseconds_t((seconds - whole) * 1e6);
    setitimer(ITIMER_PROF, &timer, nullptr);
}

}  // namespace

void limit_time(double seconds)
{
    limit = seconds;
    if (limit <= 0) return;
    const rlim_t most = rlim_t(std::ceil(limit)) + 1;  // where a file stops the timer, or handles its signal
    const rlimit processor{most, most + 1};
    setrlimit(RLIMIT_CPU, &processor);
    set_timer(limit);
}

void begin_workers() { at_fork = used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN); }

void limit_worker_time()
{
    if (limit > 0) set_timer(limit - at_fork);
}

void count_worker_time()
{
    if (limit <= 0) return;
    const double left = limit - used_by(RUSAGE_SELF) - used_by(RUSAGE_CHILDREN);
    if (left <= 0) end_late();
    set_timer(left);
}

void end_late()
{
    std::signal(SIGPROF, SIG_DFL);
    raise(SIGPROF);
    _exit(1);
}

}  // namespace tile_sim
