// Blocks that store the same bytes at one place of a tensor that allows it.
#include <algorithm>
#include <cstring>
#include <exception>

#include "schedule.h"

namespace tile_sim
{

// A block may write again what another block has written or read: as the bytes stay what they are, no
// order matters. That they do is known once the instruction has taken effect; in runs that delay that, what comes out has to tell.
bool Instruction::may_agree(const char* kind, const Memory& memory, int64_t begin, const Event& earlier) const
{
    if (kind[0] != 'W' || earlier.block == event_.block || memory.space() != Space::GM) return false;
    if (event_.pipe == Pipe::S || event_.atomic || earlier.atomic) return false;
    return std::any_of(machine.regions.begin(), machine.regions.end(),
                       [&](const Region& r) { return r.alike && r.begin <= begin && begin < r.end; });
}

Instruction::~Instruction() noexcept(false)
{
    if (std::uncaught_exceptions() || schedule.on()) return;
    for (const Meeting& m : meetings_) {
        const int64_t size = int64_t(m.bytes.size());
        if (!std::memcmp(m.memory->at(m.begin), m.bytes.data(), m.bytes.size())) continue;
        race(m.kind, *m.memory, m.begin, m.begin + size, m.earlier);
        return;
    }
}

}  // namespace tile_sim
