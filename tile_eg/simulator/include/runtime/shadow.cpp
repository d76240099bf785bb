// A memory and its shadow: for each granule who wrote it last, who read it last on each pipe, and whether it holds anything.
#include <cstdlib>
#include <cstring>

#include "schedule.h"

namespace tile_sim
{
namespace
{

constexpr uint8_t poison_byte = 0xff;  // NaN in every float format

}  // namespace

void Memory::open(Space space, int64_t bytes)
{
    space_ = space;
    bytes_ = bytes;
    const int64_t count = bytes / granule + 1;
    data_.resize(bytes);
    poison_.resize(count);
    writer.resize(count);
    for (auto& slot : reader) slot.resize(count);
    if (schedule.on()) met.resize(count);
}

void Memory::forget_order()
{
    const int64_t count = touched_ / granule + 1;
    std::memset(writer.get(), 0, size_t(count) * sizeof(uint32_t));
    for (auto& slot : reader) std::memset(slot.get(), 0, size_t(count) * sizeof(uint32_t));
    if (schedule.on()) std::memset(met.get(), 0, size_t(count) * sizeof(uint32_t));
    rewritten.clear();
}

void Memory::forget()
{
    forget_order();
    poison(0, touched_ ? touched_ : bytes_, true);
    touched_ = 0;
}

bool Memory::poisoned(int64_t begin, int64_t end)
{
    return std::memchr(poison_.get() + begin / granule, 1, size_t((end + granule - 1) / granule - begin / granule)) != nullptr;
}

void Memory::poison(int64_t begin, int64_t end, bool value)
{
    if (end <= begin) return;
    if (value) std::memset(data_.get() + begin, poison_byte, size_t(end - begin));
    std::memset(poison_.get() + begin / granule, value, size_t((end + granule - 1) / granule - begin / granule));
}

void Memory::carry_unwritten(int64_t to, int64_t from, int64_t bytes)
{
    if (to % granule == from % granule)
        std::memmove(poison_.get() + to / granule, poison_.get() + from / granule, size_t((bytes + granule - 1) / granule));
}

int Memory::slot(int core, Pipe pipe) const
{
    if (space_ == Space::GM) return core;
    return pipe == Pipe::MTE3 || pipe == Pipe::FIX ? 1 : pipe == Pipe::S ? 2 : 0;
}

}  // namespace tile_sim
