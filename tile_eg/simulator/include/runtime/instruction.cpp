// The checks that every instruction passes: bounds, alignment, order after earlier accesses, initialisation.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "lanes.h"
#include "schedule.h"

namespace tile_sim
{

std::vector<Instruction::Span> Instruction::reads_, Instruction::writes_, Instruction::rewrites_;

std::string text(const char* format, ...)
{
    char buffer[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return buffer;
}

void misuse(const char* kind, int line, const char* format, ...)
{
    char buffer[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    machine.report(kind, "", line, 0, buffer);
    throw Stop{};
}

Instruction::Instruction(const char* name, Pipe pipe, int line)
{
    Core& core = *machine.core;
    if (!core.has(pipe))
        misuse("wrong_core", line, "%s runs on pipe %s, which %s has not", name, name_of(pipe), core_name(core.index));
    if (schedule.direct() && (pipe != Pipe::S || machine.settings.auto_sync)) schedule.drain();
    reads_.clear(), writes_.clear(), rewrites_.clear();
    event_.name = name, event_.line = line, event_.pipe = pipe;
    event_.core = uint8_t(core.index), event_.block = machine.block;
    if (schedule.executing()) return;
    if (core.saturates && (pipe == Pipe::V || pipe == Pipe::M || pipe == Pipe::FIX))
        misuse("unsupported", line, "%s computes behind SetOverflow(0), which saturates; the simulator keeps infinities and NaN", name);
    event_.epoch = core.last[int(pipe)] = ++core.issued[int(pipe)];
}

void Instruction::needs(const Operand& at, Space space, const char* what) const
{
    if (at.space != space)
        misuse("wrong_memory", line(), "the %s of %s lies in %s, and must lie in %s", what, event_.name, name_of(at.space),
               name_of(space));
}

void Instruction::align(const Operand& at, int64_t to, const char* what) const
{
    if (at.address % to)
        misuse("misaligned", line(), "the %s of %s starts at byte %lld of %s, which is no multiple of %lld", what, event_.name,
               (long long)at.address, name_of(at.space), (long long)to);
}

void Instruction::counts(const char* path, int64_t bytes)
{
    machine.instructions.add(event_.name, 1), machine.bytes.add(path, bytes);
    if (machine.settings.trace && machine.rows.size() < most_rows) trace(path, bytes);
}

void Instruction::reads(const Operand& at, int64_t offset, int64_t bytes, Poison poison)
{
    past_l2_ |= at.read_past_l2;
    add(reads_, at, offset, bytes, poison);
}
void Instruction::writes(const Operand& at, int64_t offset, int64_t bytes)
{
    if (at.space != Space::GM && at.begin >= 0) event_.written = {at.begin, at.end};
    past_l2_ |= at.written_past_l2;
    add(writes_, at, offset, bytes, Poison::carry);
}

void Instruction::reads_in_a_row(const Operand& at, int64_t offset, int64_t bytes, int64_t each, Poison poison)
{
    if (within(at, at.address + offset, at.address + offset + bytes)) each = bytes;
    for (int64_t i = 0; i < bytes; i += each) reads(at, offset + i, std::min(each, bytes - i), poison);
}

void Instruction::writes_in_a_row(const Operand& at, int64_t offset, int64_t bytes, int64_t each)
{
    if (within(at, at.address + offset, at.address + offset + bytes)) each = bytes;
    for (int64_t i = 0; i < bytes; i += each) writes(at, offset + i, std::min(each, bytes - i));
}

void Instruction::rewrites(const Operand& at, int64_t offset, int64_t bytes, uint32_t by)
{
    add(rewrites_, at, offset, bytes, Poison::carry);
    rewritten_by_ = by;
}

void Instruction::add(std::vector<Span>& spans, const Operand& at, int64_t offset, int64_t bytes, Poison poison) const
{
    if (bytes <= 0) return;
    const int64_t begin = at.address + offset, end = begin + bytes;
    if (at.space == Space::GM)
        bounds_in_gm(at, begin, end);
    else
        bounds(at, begin, end);
    Memory* memory = &machine.memory(at);
    const bool goes_on = !spans.empty() && spans.back().memory == memory && spans.back().end == begin;
    if (goes_on && spans.back().poison == poison && spans.back().tensor.same({at.begin, at.end}))
        spans.back().end = end;
    else
        spans.push_back({memory, begin, end, poison, {at.begin, at.end}});
}

// Of memories on the chip.
bool Instruction::within(const Operand& at, int64_t begin, int64_t end) const
{
    return at.space != Space::GM && begin >= 0 && end <= std::min(at.end, machine.memory(at).bytes());
}

// What lies beyond its tensor, but within its memory, is reported, and the run goes on.
void Instruction::bounds(const Operand& at, int64_t begin, int64_t end) const
{
    if (within(at, begin, end)) return;
    const int64_t bytes = machine.memory(at).bytes();
    if (!bytes) misuse("wrong_core", line(), "%s touches %s, which %s has not", event_.name, name_of(at.space), core_name(event_.core));
    machine.report("out_of_bounds", name_of(event_.pipe), line(), 0,
                   text("%s touches bytes [%lld, %lld) of %s; its tensor ends at byte %lld, the memory at %lld", event_.name,
                        (long long)begin, (long long)end, name_of(at.space), (long long)at.end, (long long)bytes));
    if (begin < 0 || end > bytes) throw Stop{};
}

namespace
{

std::string range_name(Memory& memory, int64_t begin, int64_t end)
{
    if (memory.space() == Space::GM)
        for (const Region& region : machine.regions)
            if (begin >= region.begin && begin < region.end)
                return text("bytes [%lld, %lld) of %s", (long long)(begin - region.begin), (long long)(end - region.begin),
                            region.name.c_str());
    return text("bytes [%lld, %lld) of %s", (long long)begin, (long long)end, name_of(memory.space()));
}

const Region* region_near(int64_t begin, int64_t end)
{
    for (const Region& region : machine.regions)
        if (end == region.end) return &region;
    for (const Region& region : machine.regions)
        if (begin >= region.begin - 512 && begin < region.end + 512) return &region;
    return nullptr;
}

}  // namespace

// As above; what lies beyond its allocation ends the run, unless it is a number that the scalar unit reads.
void Instruction::bounds_in_gm(const Operand& at, int64_t begin, int64_t end) const
{
    if (!lies_in_gm(at, begin, end)) throw Stop{};
}

bool Instruction::lies_in_gm(const Operand& at, int64_t begin, int64_t end) const
{
    const int64_t there = begin < 0 ? 0 : gm_end(begin);
    if (begin >= 0 && end <= std::min(at.end, there)) return true;
    const Region* region = region_near(begin, at.end);
    if (!region) misuse("out_of_bounds", line(), "%s touches GM outside of every tensor", event_.name);
    machine.report("out_of_bounds", name_of(event_.pipe), line(), 0,
                   text("%s touches bytes [%lld, %lld) of %s, which has %lld bytes (its GlobalTensor ends at %lld)", event_.name,
                        (long long)(begin - region->begin), (long long)(end - region->begin), region->name.c_str(),
                        (long long)(region->end - region->begin), (long long)(at.end - region->begin)));
    return begin >= 0 && end <= there;
}

// Whether the hardware orders this instruction after an earlier one on the same tile of L0C by itself.
bool Instruction::guards(const Event& earlier) const
{
    if (earlier.guarded && event_.guarded) return true;
    return earlier.pipe != event_.pipe && earlier.unit_flag && event_.unit_flag;  // or one waits for ever (unit_flags.cpp)
}

// What the compiler orders on a vector core when it may (--cce-auto-sync): V with V, and the scalar unit with every pipe.
bool Instruction::compiler_orders(const Event& earlier) const
{
    Core& core = *machine.core;
    const bool scalar = earlier.pipe == Pipe::S || event_.pipe == Pipe::S, vector = earlier.pipe == Pipe::V && event_.pipe == Pipe::V;
    if (!machine.settings.auto_sync || core.index == AIC || earlier.core != core.index || !(scalar || vector)) return false;
    for (int pipe = 0; pipe < pipes; ++pipe)
        if (event_.pipe == Pipe::S || pipe == int(event_.pipe)) {
            uint32_t& known = core.clock[pipe][earlier.core * pipes + int(earlier.pipe)];
            known = std::max(known, earlier.epoch);
        }
    return true;
}

namespace
{

bool knows(const Core& core, const Event& earlier)
{
    if (!core.others) return false;
    if (core.read.count(uint32_t(&earlier - machine.events.data()))) return true;
    const auto of = core.others->find(earlier.block);
    return of != core.others->end() && of->second[earlier.core * pipes + int(earlier.pipe)] >= earlier.epoch;
}

}  // namespace

bool Instruction::ordered(const Event& earlier, Space space) const
{
    const Core& core = *machine.core;
    if (earlier.block != event_.block) return (earlier.atomic && event_.atomic) || knows(core, earlier);
    if (core.clock[int(event_.pipe)][earlier.core * pipes + int(earlier.pipe)] >= earlier.epoch) return true;
    if (compiler_orders(earlier)) return true;
    const bool vector = earlier.pipe == Pipe::V && event_.pipe == Pipe::V && earlier.core == event_.core;
    if (vector && machine.settings.architecture == 3510) return schedule.follows(earlier.item), true;  // the hardware orders V with V
    if (space == Space::FB) return schedule.follows(earlier.item), true;  // the vendor's Fixpipe fills and uses it with no barrier
    if (space == Space::L0C && guards(earlier)) return schedule.follows(earlier.item), true;
    return earlier.atomic && event_.atomic;
}

// Looks through one row of the shadow for instructions that this one is not ordered after.
bool Instruction::check_row(const Track& row, const Span& span, const char* kind)
{
    uint32_t fine = 0;
    const int64_t end = (span.end + granule - 1) / granule;
    for (int64_t i = span.begin / granule; (i = row.skip(i, end, fine)) < end;) {
        const uint32_t id = row[i];
        if (!std::strcmp(kind, "RAW")) machine.events[id].read = true;
        const bool part = i * granule < span.begin || (i + 1) * granule > span.end;  // the other byte may be another block's
        if (part && span.memory->space() == Space::GM && machine.events[id].block != event_.block) {
            ++i;
            continue;
        }
        const bool agree = machine.events[id].signal && event_.signal && std::strcmp(kind, "WAW");
        if (agree || ordered(machine.events[id], span.memory->space())) {
            fine = id;
            continue;
        }
        const int64_t last = row.end_of_run(i, end);
        const int64_t first_byte = std::max(span.begin, i * granule), end_byte = std::min(span.end, last * granule);
        if (may_agree(kind, *span.memory, first_byte, machine.events[id]) || loads_again(kind, *span.memory, i, last)) {
            const uint8_t* at = span.memory->at(first_byte);
            meetings_.push_back({kind, span.memory, first_byte, {at, at + (end_byte - first_byte)}, machine.events[id]});
            i = last;
            continue;
        }
        race(kind, *span.memory, first_byte, end_byte, machine.events[id]);
        return false;
    }
    return true;
}

// A write that is ordered after the readers is ordered after what they waited for.
void Instruction::check_write(const Span& span)
{
    bool fine = true;
    for (const Track& slot : span.memory->reader) fine = check_row(slot, span, "WAR") && fine;
    if (fine) check_row(span.memory->writer, span, "WAW");
}

void Instruction::check_poison(const Span& span)
{
    if (span.poison == Poison::carry || !span.memory->poisoned(span.begin, span.end)) return;
    int64_t first = span.begin;
    while (!span.memory->poisoned(first, first + 1)) ++first;
    std::string where = text("bytes from %lld of %s", (long long)first, name_of(span.memory->space()));
    for (const Region& region : machine.regions)
        if (span.memory->space() == Space::GM && first >= region.begin && first < region.end)
            where = text("bytes from %lld of %s", (long long)(first - region.begin), region.name.c_str());
    const Carrier carrier = carrier_of(*span.memory, first);
    std::string why = "which nothing has written";
    if (carrier.line) why = text("which %s at line %d computed from what nothing has written", carrier.name, carrier.line);
    machine.report("uninitialised", name_of(event_.pipe), event_.line, carrier.line,
                   text("%s reads %s, %s", event_.name, where.c_str(), why.c_str()));
}

// A small copy out of GM that is made again, with nothing done in between, waits for another core to write there.
void Instruction::yield_if_it_polls()
{
    if (event_.pipe != Pipe::MTE2 || schedule.on() || reads_.size() != 1 || writes_.empty()) return;
    const int64_t begin = reads_[0].begin, end = reads_[0].end;
    if (reads_[0].memory != &machine.gm || end - begin > 512) return;
    const std::vector<Span> reads = std::move(reads_), writes = std::move(writes_);  // other cores issue instructions meanwhile
    poll_by_copy(event_.line, begin, writes[0].begin);
    reads_ = reads, writes_ = writes;
}

void Instruction::check()
{
    yield_if_it_polls();
    if (!schedule.executing()) check_order();
    if (schedule.probing()) schedule.issued(event_.pipe);
    take_effect();
}

void Instruction::check_order()
{
    event_.load = load_of_inputs();
    check_unit_flags(), check_compare_mask();
    for (const Span& span : reads_) check_row(span.memory->writer, span, "RAW"), check_live(span), check_dirty(span);
    for (const Span& span : writes_) check_write(span), check_rewritten(span);
    for (const Span& span : rewrites_) check_row(span.memory->writer, span, "WAW"), check_rewritten(span);
    record();
}

void Instruction::take_effect()
{
    for (const Span& span : reads_) check_poison(span);
    for (const Span& span : writes_) span.memory->poison(span.begin, span.end, false);
    if (!schedule.on()) return;
    for (const Span& span : reads_) schedule.touched(*span.memory, span.begin, span.end, false);
    for (const Span& span : writes_) schedule.touched(*span.memory, span.begin, span.end, true);
}

void Instruction::keeps_apart() const
{
    for (const Span& out : writes_)
        for (const Span& in : reads_)
            if (out.memory == in.memory && out.begin < in.end && in.begin < out.end)
                return machine.report("overlap", name_of(event_.pipe), event_.line, 0,
                                      text("the source and the destination of %s overlap at byte %lld of %s", event_.name,
                                           (long long)std::max(out.begin, in.begin), name_of(out.memory->space())));
}

void Instruction::record()
{
    const uint32_t id = uint32_t(machine.events.size());
    event_.item = schedule.next();
    machine.events.push_back(event_);
    for (const Span& span : reads_) {
        span.memory->touch(span.begin, span.end);
        Track& slot = span.memory->reader[span.memory->slot(event_.core, event_.pipe)];
        const int64_t first = span.begin / granule, last = (span.end + granule - 1) / granule;
        if (event_.pipe == Pipe::S && span.memory->space() == Space::GM)
            slot.fill_empty(first, last, id);  // it has finished already: a copy that reads the same may not have
        else
            slot.fill(first, last, id);
    }
    for (const Span& span : writes_) {
        span.memory->touch(span.begin, span.end);
        machine.gm_writes += span.memory->space() == Space::GM;
        const int64_t first = span.begin / granule, last = (span.end + granule - 1) / granule;
        note_overwritten(id, span), count_down(id, span);
        span.memory->writer.fill(first, last, id);
        if (event_.load && !meetings_.empty()) continue;  // a load made again: who reads may not have finished for the next write
        for (Track& slot : span.memory->reader) slot.fill(first, last, 0);
    }
    for (const Span& span : rewrites_) span.memory->rewritten[span.begin / line_bytes * line_bytes] = rewritten_by_;
}

namespace
{

std::string remedy(const Event& earlier, const Event& later)
{
    const char *a = name_of(earlier.pipe), *b = name_of(later.pipe);
    if (earlier.block != later.block)
        return text("blocks run in no promised order, and must not meet%s",
                    later.pipe == Pipe::S ? " (a data cache writes back 64 bytes at once)" : "");
    if (earlier.core != later.core && earlier.core != AIC && later.core != AIC)
        return "no flag of mode 2 orders two vector cores: let both set a flag that AIC waits for, and AIC set one for both";
    if (earlier.core != later.core)
        return text(
            "CrossCoreSetFlag<2, PIPE_%s> after line %d on %s and CrossCoreWaitFlag before line %d on %s would order them", a,
            earlier.line, core_name(earlier.core), later.line, core_name(later.core));
    if (earlier.pipe == later.pipe)
        return text("PipeBarrier<PIPE_%s> between line %d and line %d would order them", a, earlier.line, later.line);
    return text("SetFlag<HardEvent::%s_%s> after line %d and WaitFlag<HardEvent::%s_%s> before line %d would order them", a, b,
                earlier.line, a, b, later.line);
}

}  // namespace

void Instruction::race(const char* kind, Memory& memory, int64_t begin, int64_t end, const Event& earlier)
{
    const bool blocks = earlier.block != event_.block;
    const std::string where = range_name(memory, begin, end);
    const std::string what = text("%s: %s (%s, %s) %s %s, and %s at line %d (%s, %s%s), which %s them, may not have finished; ",
                                  blocks && !std::strcmp(kind, "WAW") ? "written by two blocks" : kind, event_.name,
                                  core_name(event_.core), name_of(event_.pipe), kind[0] == 'R' ? "reads" : "writes",
                                  where.c_str(), earlier.name, earlier.line, core_name(earlier.core), name_of(earlier.pipe),
                                  blocks                                                      ? text(", block %u", earlier.block).c_str()
                                  : earlier.line >= event_.line && earlier.core == event_.core ? ", an earlier pass"
                                                                                               : "",
                                  kind[2] == 'R' ? "reads" : "writes");
    machine.report(blocks ? "block_race" : "race", name_of(event_.pipe), event_.line, earlier.line,
                   what + remedy(earlier, event_));
}

}  // namespace tile_sim
