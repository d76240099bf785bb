// Address space for memories and what is noted of them.
#include "reserved.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <stdexcept>

#include "confine.h"
#include "machine.h"

namespace tile_sim
{
namespace
{

int64_t reserved = 0;
bool limited = false;

}  // namespace

uint8_t* reserve(int64_t bytes, int flags, int file, int64_t offset)
{
    reserved += bytes;
    if (limited) limit_memory();
    void* const at = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, file, off_t(offset));
    if (at == MAP_FAILED)
        throw std::runtime_error(text("this system gives no address space of %lld bytes (see ulimit -v)", (long long)bytes));
    return static_cast<uint8_t*>(at);
}

void release(uint8_t* at, int64_t bytes)
{
    munmap(at, size_t(bytes));
    reserved -= bytes;
    if (limited) limit_memory();
}

void limit_memory()
{
    limited = true;
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit)) return;
    limit.rlim_cur = std::min(rlim_t(machine.settings.memory + reserved), limit.rlim_max);  // the limit, not the most that it could be raised to
    set_limit(RLIMIT_AS, limit);
}

Reserved::Reserved(int64_t bytes, int file) : bytes_(bytes)
{
    at_ = reserve(bytes, MAP_PRIVATE | (file < 0 ? MAP_ANONYMOUS : 0), file);
}

Reserved::~Reserved()
{
    if (at_) release(at_, bytes_);
}

}  // namespace tile_sim
