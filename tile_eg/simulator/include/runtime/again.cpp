// Loads that are made again: what lies there already.
#include <algorithm>

#include "machine.h"

namespace tile_sim
{
namespace
{

// The input that holds the bytes and that no kernel writes.
bool in_an_input(int64_t begin, int64_t end)
{
    return std::any_of(machine.regions.begin(), machine.regions.end(),
                       [&](const Region& r) { return r.input && !r.output && r.begin <= begin && end <= r.end; });
}

uint64_t mix(uint64_t hash, int64_t value) { return (hash ^ uint64_t(value)) * 0x9e3779b97f4a7c15u + (hash >> 29); }

}  // namespace

// What a copy of inputs on the chip copies, and where to; 0 for everything else.
uint64_t Instruction::load_of_inputs() const
{
    if (!machine.settings.lenient || event_.pipe != Pipe::MTE2 || reads_.empty() || writes_.empty()) return 0;
    uint64_t hash = 1;
    for (const Span& span : reads_) {
        if (span.memory->space() != Space::GM || !in_an_input(span.begin, span.end)) return 0;
        hash = mix(mix(hash, span.begin), span.end);
    }
    for (const Span& span : writes_) {
        if (span.memory->space() == Space::GM) return 0;
        hash = mix(mix(mix(hash, int64_t(span.memory->space())), span.begin), span.end);
    }
    return hash | 1;
}

// Whether it loads again what the same copy of inputs has brought to all of the granules: no order changes what is read there.
bool Instruction::loads_again(const char* kind, Memory& memory, int64_t first, int64_t last) const
{
    if (kind[0] != 'W' || !event_.load) return false;
    for (int64_t i = first; i < last; ++i)
        if (machine.events[memory.writer[i]].load != event_.load) return false;
    return true;
}

}  // namespace tile_sim
