// Cores that read GM again and again until another core writes: they stand still meanwhile.
#include <numeric>

#include "schedule.h"

namespace tile_sim
{
namespace
{

constexpr int64_t most_reads = 64;  // with nothing between them, before a core is taken to wait

// Instructions that a core has issued, other than those that take part in reading GM.
uint32_t work_of(const Core& core, bool copies_too)
{
    const uint32_t all = std::accumulate(core.issued.begin(), core.issued.end(), 0u) - core.issued[int(Pipe::S)];
    return copies_too ? all : all - core.issued[int(Pipe::MTE2)];
}

void wait_for_a_write(int line)
{
    const auto over = [before = machine.gm_writes] { return machine.gm_writes != before; };
    const auto what = [] { return std::string("reads GM again and again, and no core that can go on writes to it"); };
    wait_until({over, what, true}, line);
}

}  // namespace

void poll(int line)
{
    Core& core = *machine.core;
    const uint32_t work = work_of(core, true);
    if (core.poll.work != work) core.poll.work = work, core.poll.times = 0;
    if (++core.poll.times < most_reads) return;
    wait_for_a_write(line);
    core.poll.times = 0;
}

void poll_by_copy(int line, int64_t src, int64_t dst)
{
    Core& core = *machine.core;
    const std::array<int64_t, 5> copy{line, src, dst, machine.gm_writes, work_of(core, false)};
    if (core.poll.copied == copy) wait_for_a_write(line);
    core.poll.copied = {line, src, dst, machine.gm_writes, work_of(core, false)};
}

}  // namespace tile_sim
