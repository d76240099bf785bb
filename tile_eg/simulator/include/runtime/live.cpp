// Buffers that overlap while both are in use: one read finds bytes that were written through its own tensor, and bytes that were
// written later through another tensor that overlaps it in part.
#include "machine.h"

namespace tile_sim
{

void Instruction::check_live(const Span& span) const
{
    if (span.memory->space() == Space::GM || span.tensor.begin < 0) return;
    uint32_t own = 0, other = 0, last = 0;
    for (int64_t i = span.begin / granule; i < (span.end + granule - 1) / granule; ++i) {
        const uint32_t id = span.memory->writer[i];
        if (id == last) continue;
        last = id;
        const Place& written = machine.events[id].written;
        if (written.same(span.tensor)) own = own ? std::min(own, id) : id;
        if (written.meets_in_part(span.tensor)) other = std::max(other, id);
    }
    if (!own || other < own) return;
    const Event& later = machine.events[other];
    machine.report("overlap", name_of(event_.pipe), event_.line, later.line,
                   text("%s reads a tensor at bytes [%lld, %lld) of %s, part of which %s at line %d has overwritten through a tensor "
                        "at [%lld, %lld): two buffers overlap while both are in use",
                        event_.name, (long long)span.tensor.begin, (long long)span.tensor.end, name_of(span.memory->space()),
                        later.name, later.line, (long long)later.written.begin, (long long)later.written.end));
}

}  // namespace tile_sim
