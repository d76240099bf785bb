// What one core writes for another one, and overwrites before anything has read any of it: where a handover stands for several
// values, only the last one arrives.
#include "machine.h"

namespace tile_sim
{
namespace
{

// A workspace, or a memory of another core: what lies there is for somebody else. On its own core a load may be for nothing, where
// a guard leaves out what would read it.
bool passes_on(const Memory& memory, int64_t at, int core)
{
    if (memory.space() != Space::GM) return &memory != &machine.cores[core].memory[int(memory.space())];
    return std::any_of(machine.regions.begin(), machine.regions.end(),
                       [&](const Region& r) { return !r.input && !r.output && r.begin <= at && at < r.end; });
}

}  // namespace

// The instruction with this event writes the span; a granule that it writes in part still holds what was there.
void Instruction::count_down(uint32_t id, const Span& span)
{
    if (machine.settings.lenient || event_.atomic || !passes_on(*span.memory, span.begin, event_.core)) return;
    const int64_t end = span.end / granule;
    for (int64_t i = (span.begin + granule - 1) / granule, last; (i = span.memory->writer.skip(i, end, 0)) < end; i = last) {
        last = span.memory->writer.end_of_run(i, end);
        Event& earlier = machine.events[span.memory->writer[i]];
        earlier.left -= last - i;
        if (&earlier != &machine.events[id] && !earlier.left && !earlier.read) tell_unread(span, earlier);
    }
    machine.events[id].left += (span.end + granule - 1) / granule - span.begin / granule;
}

void Instruction::tell_unread(const Span& span, const Event& earlier) const
{
    const bool again = earlier.line == event_.line;
    machine.report("overwritten", name_of(event_.pipe), event_.line, earlier.line,
                   text("%s (%s, %s) writes over what %s (%s, %s) %s has written to %s, and nothing has read that", event_.name,
                        core_name(event_.core), name_of(event_.pipe), earlier.name, core_name(earlier.core), name_of(earlier.pipe),
                        again ? "in an earlier pass" : text("at line %d", earlier.line).c_str(), name_of(span.memory->space())));
}

}  // namespace tile_sim
