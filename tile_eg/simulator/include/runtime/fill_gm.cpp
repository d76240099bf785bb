// A value for a piece of GM.
#include <cstring>

#include "schedule.h"

namespace tile_sim
{

void fill_gm(Operand dst, int64_t count, uint64_t bits, int line)
{
    if (queued(line, [=] { fill_gm(dst, count, bits, line); }, dst)) return;
    const int64_t size = size_of(dst.type);
    Instruction fill("Fill", Pipe::MTE3, line);
    fill.needs(dst, Space::GM, "destination");
    if (!count) return;
    fill.writes(dst, 0, count * size);
    fill.check();
    fill.counts("UB->GM", count * size);
    for (int64_t i = 0; i < count; ++i) std::memcpy(fill.data(dst, i * size), &bits, size_t(size));
}

}  // namespace tile_sim
