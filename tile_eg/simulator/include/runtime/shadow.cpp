// A memory and its shadow: for each granule who wrote it last, who read it last on each pipe, and whether it holds anything.
//
// GM is as large as the tensors say, and costs what is touched: a chunk of it comes to life with the first access, and only then
// knows that nothing has written it.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "confine.h"
#include "lanes.h"
#include "schedule.h"

namespace tile_sim
{
namespace
{

constexpr uint8_t poison_byte = 0xff;  // NaN in every float format

// Whether the byte is one of a tensor that nothing has written when the kernel begins.
bool unwritten_at(int64_t address)
{
    return std::any_of(machine.regions.begin(), machine.regions.end(), [&](const Region& region) {
        return !region.input && address >= region.begin && address < region.end;
    });
}

}  // namespace

void Memory::open(Space space, int64_t bytes, int file)
{
    space_ = space;
    bytes_ = bytes;
    const int64_t count = bytes / granule + 1;
    data_.resize(bytes, file);
    unwritten_.resize(count);
    writer.resize(count);
    for (auto& slot : reader) slot.resize(count);
    if (schedule.on()) met.resize(count);
    if (space == Space::GM) awake_.resize(bytes / chunk + 1);
}

void Memory::touch(int64_t begin, int64_t end)
{
    touched_ = std::max(touched_, end);
    if (space_ != Space::GM) return;
    for (int64_t i = begin / chunk; i * chunk < end; ++i)
        if (!awake_[i]) wake(i);
}

// What the chunk holds is left alone: a host may have put it there by its address.
void Memory::wake(int64_t i)
{
    pay_for(i);
    awake_[i] = 1;
    const int64_t begin = i * chunk, end = std::min(begin + chunk, bytes_);
    for (const Region& region : machine.regions) {
        const int64_t from = std::max(begin, region.begin), to = std::min(end, region.end);
        if (from < to && !region.input) unwritten_.set(from / granule, (to + granule - 1) / granule, true);
    }
}

// Pages of what is noted are larger than what one chunk needs: the first of the chunks that share them pays.
void Memory::pay_for(int64_t i)
{
    constexpr int64_t together = 4, page = chunk * together / (granule * per_entry) * int64_t(sizeof(uint32_t));
    const int64_t first = i / together * together, last = std::min(first + together, bytes_ / chunk + 1);
    pay(chunk + (schedule.on() ? chunk / granule * int64_t(sizeof(uint32_t)) : 0));
    if (std::all_of(awake_.get() + first, awake_.get() + last, [](uint8_t awake) { return !awake; })) pay(page * (1 + slots) + page / 2);
}

// The process ends: nothing that a kernel does can go on without memory, and no part of its blocks may be reported as the whole.
void Memory::pay(int64_t bytes)
{
    paid_ += bytes;
    if (paid_ <= machine.settings.memory) return;
    std::fflush(stdout);
    _exit(4);
}

template <class Visit>
void Memory::each_awake(int64_t begin, int64_t end, Visit visit)
{
    for (int64_t i = begin / chunk; i * chunk < end; ++i)
        if (awake_[i]) visit(std::max(begin, i * chunk), std::min(end, (i + 1) * chunk));
}

void Memory::renew(int64_t begin, int64_t end)
{
    each_awake(begin, end, [&](int64_t from, int64_t to) {
        poison(from, to, true);
        std::memset(data_.get() + from, 0, size_t(to - from));
    });
}

void Memory::forget_order()
{
    const auto forget = [&](int64_t begin, int64_t end) {
        const int64_t first = begin / granule, last = (end + granule - 1) / granule;
        writer.fill(first, last, 0);
        for (Track& slot : reader) slot.fill(first, last, 0);
        if (schedule.on()) std::memset(met.get() + first, 0, size_t(last - first) * sizeof(uint32_t));
    };
    if (space_ == Space::GM)
        each_awake(0, touched_, forget);
    else
        forget(0, touched_);
    rewritten.clear();
}

void Memory::forget()
{
    forget_order();
    forget_carriers(*this);
    poison(0, touched_ ? touched_ : bytes_, true);
    touched_ = 0;
}

bool Memory::poisoned_in_gm(int64_t begin, int64_t end)
{
    for (int64_t from = begin, to = 0; from < end; from = to) {
        to = std::min(end, (from / chunk + 1) * chunk);
        if (awake_[from / chunk] ? unwritten_.any(from / granule, (to + granule - 1) / granule) : unwritten_at(from)) return true;
    }
    return false;
}

void Memory::poison(int64_t begin, int64_t end, bool value)
{
    if (end <= begin) return;
    if (space_ == Space::GM) touch(begin, end);
    if (value) std::memset(data_.get() + begin, poison_byte, size_t(end - begin));
    forget_bits(*this, begin, end);
    unwritten_.set(begin / granule, (end + granule - 1) / granule, value);
}

std::vector<std::pair<int64_t, int64_t>> Memory::unwritten(int64_t begin, int64_t end)
{
    std::vector<std::pair<int64_t, int64_t>> found;
    const auto add = [&](int64_t from, int64_t to) {
        if (!found.empty() && found.back().second == from)
            found.back().second = to;
        else
            found.push_back({from, to});
    };
    for (int64_t from = begin, to = 0; from < end; from = to) {
        to = std::min(end, (from / chunk + 1) * chunk);
        if (!poisoned(from, to)) continue;
        const int64_t step = space_ == Space::GM && !awake_[from / chunk] ? to - from : granule;
        for (int64_t at = from; at < to; at += step)
            if (poisoned(at, at + 1)) add(at, std::min(to, at + step));
    }
    return found;
}

void Memory::carry_unwritten(int64_t to, int64_t from, int64_t bytes)
{
    touch(to, to + bytes), touch(from, from + bytes);
    forget_bits(*this, to, to + bytes);
    if (to % granule != from % granule) return;
    std::vector<bool> marks;
    for (int64_t i = 0; i < bytes; i += granule) marks.push_back(unwritten_.any((from + i) / granule, (from + i) / granule + 1));
    for (int64_t i = 0; i < bytes; i += granule) unwritten_.set((to + i) / granule, (to + i) / granule + 1, marks[size_t(i / granule)]);
}

int Memory::slot(int core, Pipe pipe) const
{
    if (space_ == Space::GM) return core;
    return pipe == Pipe::MTE3 || pipe == Pipe::FIX ? 1 : pipe == Pipe::S ? 2 : 0;
}

}  // namespace tile_sim
