// A device for the host side of a file: tensors are pieces of GM, and a launch runs all its blocks.
#include "host.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "machine.h"

namespace tile_sim
{
namespace
{

constexpr int64_t gap = 4096;  // bytes between two tensors, so that an overrun is not another tensor

Region* region_of(const void* pointer)
{
    const int64_t address = static_cast<const uint8_t*>(pointer) - machine.gm.at(0);
    for (Region& region : machine.regions)
        if (address >= region.begin && address < region.end) return &region;
    return nullptr;
}

bool fits(const void* pointer, size_t bytes)
{
    const Region* region = region_of(pointer);
    return !region || static_cast<const uint8_t*>(pointer) + bytes <= machine.gm.at(region->end);
}

void written(void* pointer, size_t bytes)
{
    if (!region_of(pointer)) return;
    const int64_t begin = static_cast<uint8_t*>(pointer) - machine.gm.at(0);
    machine.gm.poison(begin, begin + int64_t(bytes), false);
}

// What the host takes from the device is a result: bytes of it that nothing has written are none.
void check_results(const void* pointer, size_t bytes, int line)
{
    const Region* region = region_of(pointer);
    if (!region) return;
    const int64_t begin = static_cast<const uint8_t*>(pointer) - machine.gm.at(0);
    const uint8_t* const first = machine.gm.unwritten(begin);
    const int64_t count = (int64_t(bytes) + granule - 1) / granule;
    const int64_t left = std::count(first, first + count, uint8_t(1));
    if (!left) return;
    const int64_t at = std::find(first, first + count, uint8_t(1)) - first;
    machine.report("unwritten", "", line, 0,
                   text("the host copies %lld bytes of %s, and nothing has written %lld of them, the first of these byte %lld of %s",
                        (long long)bytes, region->name.c_str(), (long long)std::min(left * granule, int64_t(bytes)),
                        (long long)(begin - region->begin + at * granule), region->name.c_str()));
}

// A copy on the device carries what it copies, unwritten bytes too.
void carry_unwritten(void* dst, const void* src, size_t bytes)
{
    if (!region_of(dst) || !region_of(src)) return;
    const int64_t to = static_cast<uint8_t*>(dst) - machine.gm.at(0), from = static_cast<const uint8_t*>(src) - machine.gm.at(0);
    machine.gm.carry_unwritten(to, from, int64_t(bytes));
}

// The name in `(void**)&name` or `(void**)(&name)`.
std::string last_name(const char* expression)
{
    std::string name;
    for (const char* c = expression; *c; ++c)
        if (std::isalnum(uint8_t(*c)) || *c == '_' || *c == '[' || *c == ']')
            name += *c;
        else if (*c != ')')
            name.clear();
    return name.empty() ? "a tensor" : name;
}

}  // namespace

void* device_malloc(size_t bytes, const char* name)
{
    int64_t begin = gap;
    for (const Region& region : machine.regions) begin = std::max(begin, (region.end + 511) / 512 * 512 + gap);
    if (begin + int64_t(bytes) + gap > machine.gm.bytes()) return nullptr;
    machine.regions.push_back({last_name(name), begin, begin + int64_t(bytes), false, false});
    machine.gm.poison(begin, begin + int64_t(bytes), true);
    std::memset(machine.gm.at(begin), 0, bytes);  // nothing has written it, and it is zero, as fresh memory of a device mostly is
    return machine.gm.at(begin);
}

bool device_free(void* pointer)
{
    for (size_t i = 0; i < machine.regions.size(); ++i)
        if (machine.gm.at(machine.regions[i].begin) == pointer) {
            machine.regions.erase(machine.regions.begin() + std::ptrdiff_t(i));
            return true;
        }
    return pointer == nullptr;
}

bool copy(void* dst, size_t room, const void* src, size_t bytes, int line)
{
    if (bytes > room || !fits(dst, bytes) || !fits(src, bytes)) return false;
    if (!region_of(dst)) check_results(src, bytes, line);
    std::memmove(dst, src, bytes);
    written(dst, bytes);
    carry_unwritten(dst, src, bytes);
    return true;
}

bool fill(void* dst, size_t room, int value, size_t bytes)
{
    if (bytes > room || !fits(dst, bytes)) return false;
    std::memset(dst, value, bytes);
    written(dst, bytes);
    return true;
}

int64_t cube_cores() { return machine.settings.cores; }
int64_t capacity(Space space) { return machine.settings.capacity[int(space)]; }

void launch(const char* kernel, KernelType type, int64_t blocks, int line, const std::function<void()>& call)
{
    if (blocks < 1) misuse("launch", line, "%s is launched with %lld blocks", kernel, (long long)blocks);
    machine.settings.type = type, machine.settings.launch = blocks;
    machine.gm.forget_order();
    machine.events.resize(1);
    trace_mark("S", kernel, line, "launch", {int64_t(type), blocks, 0, 0});
    const bool ended = run_blocks(call);
    machine.core = nullptr;
    if (!ended) throw Stop{};
}

}  // namespace tile_sim
