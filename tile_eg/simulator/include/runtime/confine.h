// Confinement of native code that a stranger may have written: what its process may open, start and reach. The kernel of the machine
// keeps it, from before the library is loaded (its global constructors run then) to the end of the process, threads and workers too.
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace tile_sim
{

struct Grants {
    bool confined = true;
    std::vector<std::string> reads, writes;  // folders that it may read, and write in, besides the libraries of the system
};

std::string cannot_confine();  // why this machine cannot, or not wholly; empty where it can
void confine(const Grants& grants, const char* library);
pid_t fork_worker();           // fork(), which a confined process cannot call by itself
FILE* worker_file();           // std::tmpfile(), likewise
int set_limit(int what, const rlimit& limit);  // setrlimit(), likewise

// The parts. Files: Landlock; false where the machine has none. Calls: a seccomp filter; what it traps goes to `refuse.cpp`.
int landlock_version();
bool confine_files(const Grants& grants, const char* library);
bool can_filter_calls();
bool confine_calls(bool writes_files, uint64_t pass);
bool install_refusals(bool writes_files, uint64_t pass);
[[noreturn]] void end_refused();  // ends the process as a refused call does

}  // namespace tile_sim
