// The data cache between a core's scalar unit and GM: lines of 64 bytes, which it fetches whole, holds without watching GM, and
// writes back whole (DataCacheCleanAndInvalid.md, GlobalTensor SetValue.md). Here it keeps every line until it is told to let go,
// or the kernel ends; a cache that lets go earlier changes nothing in a kernel without findings.
#include <cstring>

#include "machine.h"

namespace tile_sim
{
namespace
{

constexpr int64_t line_granules = line_bytes / granule;

int64_t line_of(int64_t address) { return address / line_bytes * line_bytes; }
int64_t end_of(int64_t start) { return std::min(start + line_bytes, gm_end(start)); }

CacheLine& fetch(int64_t start, int line)
{
    auto [at, is_new] = machine.core->cache.try_emplace(start);
    CacheLine& held = at->second;
    if (!is_new) return held;
    held.fetched_at = line;
    std::memcpy(held.data, machine.gm.at(start), size_t(end_of(start) - start));
    for (int64_t i = 0; i < line_granules; ++i) held.writer[i] = machine.gm.writer[start / granule + i];
    return held;
}

std::string bytes_in(int64_t begin, int64_t end)
{
    for (const Region& region : machine.regions)
        if (begin >= region.begin && begin < region.end)
            return text("bytes [%lld, %lld) of %s", (long long)(begin - region.begin), (long long)(end - region.begin),
                        region.name.c_str());
    return "GM";
}

// Who has written to [begin, end) of GM since the line was fetched, and not through this cache.
const Event* newer(const CacheLine& held, int64_t start, int64_t begin, int64_t end)
{
    for (int64_t g = begin / granule; g < (end + granule - 1) / granule; ++g)
        if (const uint32_t id = machine.gm.writer[g]; id != held.writer[g - start / granule]) return &machine.events[id];
    return nullptr;
}

void report(int line, int other, std::string message) { machine.report("cache", "S", line, other, std::move(message)); }

void check_fresh(CacheLine& held, int64_t begin, int64_t end, int line)
{
    const Event* later = newer(held, line_of(begin), begin, end);
    if (!later) return;
    report(line, later->line,
           text("the data cache holds %s since line %d, and %s at line %d (%s, block %u) has written them since: "
                "DataCacheCleanAndInvalid before line %d would fetch them anew",
                bytes_in(begin, end).c_str(), held.fetched_at, later->name, later->line, core_name(later->core), later->block,
                line));
    std::memcpy(held.data + begin % line_bytes, machine.gm.at(begin), size_t(end - begin));
}

// What other cores, or other pipes, write beside the changed bytes of a line is lost when it is written back.
void check_beside(const CacheLine& held, int64_t start, const char* name, int line)
{
    if (const Event* later = newer(held, start, start, end_of(start)))
        report(held.changed_at, later->line,
               text("%s at line %d (%s, block %u) has written to %s, and is lost: the data cache fetched them at line %d and writes "
                    "them back whole, for line %d changed some",
                    later->name, later->line, core_name(later->core), later->block, bytes_in(start, end_of(start)).c_str(),
                    held.fetched_at, held.changed_at));
    Instruction back(name, Pipe::S, line);
    back.rewrites({Space::GM, DType::u8, start, end_of(start)}, 0, end_of(start) - start, held.changed_by);
    back.check();
}

void write_back(int64_t start, CacheLine& held, const char* name, int line)
{
    if (!held.dirty) return;
    check_beside(held, start, name, line);
    for (int64_t i = 0; i < line_bytes; ++i)
        if (held.dirty >> i & 1) *machine.gm.at(start + i) = held.data[i];
    held.dirty = 0;
    machine.dirty_lines.erase(start);
}

bool dirty_bytes(const CacheLine& held, int64_t start, int64_t begin, int64_t end)
{
    for (int64_t i = std::max(begin, start); i < std::min(end, start + line_bytes); ++i)
        if (held.dirty >> (i - start) & 1) return true;
    return false;
}

}  // namespace

uint64_t cached_read(const Operand& at, int64_t index, int line)
{
    const int64_t size = size_of(at.type), begin = at.address + index * size;
    CacheLine& held = fetch(line_of(begin), line);
    check_fresh(held, begin, begin + size, line);
    uint64_t bits = 0;
    std::memcpy(&bits, held.data + begin % line_bytes, size_t(size));
    return bits;
}

// The access has been checked and recorded as the last event.
void cached_write(const Operand& at, int64_t index, uint64_t bits, int line)
{
    const int64_t size = size_of(at.type), begin = at.address + index * size, start = line_of(begin), offset = begin - start;
    CacheLine& held = fetch(start, line);
    std::memcpy(held.data + offset, &bits, size_t(size));
    held.changed_at = line, held.changed_by = uint32_t(machine.events.size()) - 1;
    for (int64_t i = 0; i < size; ++i) held.dirty |= uint64_t(1) << (offset + i), held.writer[(offset + i) / granule] = held.changed_by;
    machine.dirty_lines[start] = machine.core;
}

bool lets_go(int64_t address)
{
    const Core& core = *machine.core;
    return core.let_go.count(line_of(address)) && !core.cache.count(line_of(address));
}

// Without `all`: the line from the address on (the page: to the next multiple of 64).
void clean_cache(Operand at, bool all, int line)
{
    if (at.space != Space::GM) misuse("unsupported", line, "the simulator knows DataCacheCleanAndInvalid on GM only");
    Core& core = *machine.core;
    std::vector<int64_t> starts;
    for (const auto& [start, held] : core.cache)
        if (all || start == line_of(at.address)) starts.push_back(start);
    for (int64_t start : starts) {
        write_back(start, core.cache[start], "DataCacheCleanAndInvalid", line);
        core.cache.erase(start), core.let_go[start] = true;
    }
    if (!all) core.let_go[line_of(at.address)] = true;
}

void flush_cache()
{
    for (auto& [start, held] : machine.core->cache) write_back(start, held, "SetValue", held.changed_at);
    machine.core->cache.clear();
}

// Reads past this core's data cache of what some data cache holds back.
void Instruction::check_dirty(const Span& span) const
{
    if (span.memory->space() != Space::GM || machine.dirty_lines.empty()) return;
    for (auto at = machine.dirty_lines.lower_bound(line_of(span.begin)); at != machine.dirty_lines.end() && at->first < span.end; ++at) {
        const auto& [start, core] = *at;
        const CacheLine& held = core->cache[start];
        const bool own = core == machine.core && event_.pipe == Pipe::S && !std::strcmp(event_.name, "GetValue");
        if (own || !dirty_bytes(held, start, span.begin, span.end)) continue;
        return report(event_.line, held.changed_at,
                      text("%s reads %s, and what SetValue at line %d has written is still in the data cache of %s: "
                           "DataCacheCleanAndInvalid after line %d would write it to GM",
                           event_.name, bytes_in(span.begin, span.end).c_str(), held.changed_at, core_name(core->index),
                           held.changed_at));
    }
}

// A write into a line that another core's data cache has written back whole, whenever that was.
void Instruction::check_rewritten(const Span& span)
{
    const auto& lines = span.memory->rewritten;
    if (lines.empty()) return;
    for (auto at = lines.lower_bound(line_of(span.begin)); at != lines.end() && at->first < span.end; ++at) {
        const Event& earlier = machine.events[at->second];
        if ((earlier.core == event_.core && earlier.block == event_.block) || ordered(earlier, Space::GM)) continue;
        return race("WAW", *span.memory, std::max(span.begin, at->first), std::min(span.end, at->first + line_bytes), earlier);
    }
}

}  // namespace tile_sim
