// Buffers that overlap while both are in use: a read finds bytes that were written through its own tensor, and have since been
// overwritten through another one that overlaps it in part. Declared lengths that overlap, and bytes that do not, are two views.
#include "machine.h"

namespace tile_sim
{

// Whose bytes this instruction overwrites, where its tensor overlaps theirs in part: told by its event for whoever reads them.
void Instruction::note_overwritten(uint32_t id, const Span& span)
{
    if (span.memory->space() == Space::GM || event_.written.begin < 0 || event_.written.end == 0) return;
    const int64_t end = (span.end + granule - 1) / granule;
    for (int64_t i = span.begin / granule, last; (i = span.memory->writer.skip(i, end, 0)) < end; i = last) {
        last = span.memory->writer.end_of_run(i, end);
        note_overwritten(id, span.memory->writer[i], {i * granule, last * granule});
    }
}

// What the overwritten instruction had overwritten itself is gone as well.
void Instruction::note_overwritten(uint32_t id, uint32_t before, const Place& bytes)
{
    const Place& own = event_.written;
    const auto note = [&](const Place& tensor, const Place& where) {
        const Place both{std::max(where.begin, bytes.begin), std::min(where.end, bytes.end)};
        if (both.begin < both.end && tensor.meets_in_part(own)) machine.overwritten[id].push_back({tensor, both});
    };
    note(machine.events[before].written, bytes);
    const auto found = machine.overwritten.find(before);
    if (found == machine.overwritten.end()) return;
    const std::vector<Overwritten> earlier = found->second;
    for (const Overwritten& o : earlier) note(o.tensor, o.bytes);
}

void Instruction::check_live(const Span& span) const
{
    if (span.memory->space() == Space::GM || span.tensor.begin < 0 || machine.overwritten.empty()) return;
    const int64_t end = (span.end + granule - 1) / granule;
    for (int64_t i = span.begin / granule, last; (i = span.memory->writer.skip(i, end, 0)) < end; i = last) {
        const uint32_t id = span.memory->writer[i];
        last = span.memory->writer.end_of_run(i, end);
        const auto found = machine.overwritten.find(id);
        if (found == machine.overwritten.end()) continue;
        for (const Overwritten& o : found->second)
            if (o.tensor.same(span.tensor) && o.bytes.begin < last * granule && i * granule < o.bytes.end)
                return tell_overwritten(span, machine.events[id]);
    }
}

void Instruction::tell_overwritten(const Span& span, const Event& later) const
{
    machine.report("overlap", name_of(event_.pipe), event_.line, later.line,
                   text("%s reads a tensor at bytes [%lld, %lld) of %s, part of which %s at line %d has overwritten through a tensor "
                        "at [%lld, %lld): two buffers overlap while both are in use",
                        event_.name, (long long)span.tensor.begin, (long long)span.tensor.end, name_of(span.memory->space()),
                        later.name, later.line, (long long)later.written.begin, (long long)later.written.end));
}

}  // namespace tile_sim
