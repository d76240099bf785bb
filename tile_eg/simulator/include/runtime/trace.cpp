// Rows of the trace: what was issued, and what it touches.
#include <algorithm>

#include "machine.h"

namespace tile_sim
{

void Instruction::trace(const char* path, int64_t bytes) const
{
    TraceRow row{machine.block, event_.core, name_of(event_.pipe), event_.name, event_.line, bytes, path, "", 0, sizes_};
    for (const auto* spans : {&reads_, &writes_})
        if (!spans->empty() && spans->front().memory == &machine.memory(Space::GM))
            for (const Region& region : machine.regions)
                if (spans->front().begin >= region.begin && spans->front().begin < region.end)
                    row.tensor = region.name, row.offset = spans->front().begin - region.begin;
    row.touched = touched();
    row.past_l2 = past_l2_;
    row.unit_flag = event_.unit_flag;
    row.makes_nz = makes_nz_;
    machine.rows.push_back(std::move(row));
}

std::vector<Touched> Instruction::touched() const
{
    std::vector<Touched> out;
    for (const auto* spans : {&reads_, &writes_}) {
        const Span* before = nullptr;
        for (const Span& span : *spans) {
            if (span.memory->space() == Space::GM) continue;
            const bool again = before && before->memory == span.memory && before->tensor.begin == span.tensor.begin &&
                               before->tensor.end == span.tensor.end;
            if (!again) out.push_back({span.memory->space(), span.begin, span.end, spans == &writes_});
            out.back().begin = std::min(out.back().begin, span.begin), out.back().end = std::max(out.back().end, span.end);
            before = &span;
        }
    }
    return out;
}

void trace_mark(const char* pipe, const std::string& name, int line, const char* path, std::array<int64_t, 4> sizes)
{
    if (!machine.settings.trace || machine.rows.size() >= most_rows) return;
    machine.rows.push_back({machine.block, machine.core ? machine.core->index : 0, pipe, name, line, 0, path, "", 0, sizes});
}

}  // namespace tile_sim
