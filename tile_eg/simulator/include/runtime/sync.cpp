// Flags and barriers, as vector clocks: a set carries what its pipe has finished and knows, a wait takes it over.
#include <algorithm>

#include "schedule.h"

namespace tile_sim
{
namespace
{

std::string event_name(Pipe src, Pipe dst, int64_t id) { return text("%s_%s, %lld", name_of(src), name_of(dst), (long long)id); }

void check_flag(Pipe src, Pipe dst, int64_t id, int line)
{
    if (id < 0 || id > 7) misuse("flag_id", line, "flag id %lld: an event has the ids 0 to 7", (long long)id);
    if (id > 5 && (machine.core->managed || !machine.settings.lenient))
        machine.report("flag_id", "", line, 0, text("flag id %lld belongs to the framework: use 0 to 5", (long long)id));
    for (Pipe pipe : {src, dst})
        if (!machine.core->has(pipe))
            misuse("wrong_core", line, "%s has no pipe %s", core_name(machine.core->index), name_of(pipe));
}

// Whether the wait of a flag's last set is known to be over before its next one.
bool waited(const Core& core, Pipe src, Pipe dst, const Flag& flag)
{
    if (dst == Pipe::S) return true;  // the scalar unit itself has waited, before it issues the next set
    return core.clock[int(src)][size_t(core.index * pipes + int(dst))] >= flag.wait_epoch;
}

}  // namespace

void join(Clock& into, const Clock& other)
{
    for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

Clock finished(const Core& core, Pipe pipe, bool early)
{
    Clock clock = core.clock[int(pipe)];
    uint32_t& own = clock[core.index * pipes + int(pipe)];
    own = std::max(own, early && core.last[int(pipe)] ? core.last[int(pipe)] - 1 : core.issued[int(pipe)]);
    return clock;
}

void set_flag(Pipe src, Pipe dst, int64_t id, int line)
{
    if (dropped(line)) return;
    id = mutated_id(line, id);
    check_flag(src, dst, id, line);
    Core& core = *machine.core;
    Flag& flag = core.flags[int(src)][int(dst)][id];
    const auto name = [&] { return event_name(src, dst, id); };
    if (machine.settings.trace) trace_mark(name_of(src), "SetFlag " + name(), line);
    if (flag.set) {
        machine.report(
            "double_set", name_of(src), line, flag.set_line,
            text("flag %s is set again before its wait: it was set at line %d, and holds one bit", name().c_str(), flag.set_line));
        flag.set_twice = true, flag.again += machine.settings.lenient;
    } else if (!machine.settings.lenient && !waited(core, src, dst, flag))
        machine.report("double_set", name_of(src), line, flag.wait_line,
                       text("flag %s may be set again before its wait at line %d has run: nothing makes %s wait for %s in "
                            "between; use another "
                            "id, or a flag back",
                            name().c_str(), flag.wait_line, name_of(src), name_of(dst)));
    raise_flag(src, dst, id, line);
}

void raise_flag(Pipe src, Pipe dst, int64_t id, int line)
{
    Core& core = *machine.core;
    Flag& flag = core.flags[int(src)][int(dst)][id];
    const bool early = core.last[int(src)] && set_early(line);
    flag.set = true, flag.set_line = line, flag.payload = finished(core, src, early);
    if (schedule.on()) schedule.set(src, dst, id, early);
}

void wait_flag(Pipe src, Pipe dst, int64_t id, int line)
{
    if (dropped(line)) return;
    id = mutated_id(line, id);
    check_flag(src, dst, id, line);
    Core& core = *machine.core;
    Flag& flag = core.flags[int(src)][int(dst)][id];
    const auto name = [&] { return event_name(src, dst, id); };
    if (machine.settings.trace) trace_mark(name_of(dst), "WaitFlag " + name(), line);
    if (!flag.set) {
        machine.report("deadlock", name_of(dst), line, 0,
                       text("pipe %s of %s waits for flag %s, and no set of it by %s comes before", name_of(dst),
                            core_name(core.index), name().c_str(), name_of(src)));
        throw Stop{};
    }
    lower_flag(src, dst, id, line);
}

void lower_flag(Pipe src, Pipe dst, int64_t id, int line)
{
    Core& core = *machine.core;
    Flag& flag = core.flags[int(src)][int(dst)][id];
    flag.set = flag.again > 0, flag.again -= flag.set;
    flag.wait_line = line, flag.wait_epoch = ++core.issued[int(dst)];
    join(core.clock[int(dst)], flag.payload);
    if (schedule.on()) schedule.wait(src, dst, id);
    if (dst == Pipe::S)  // the scalar unit issues everything, so all that it issues later comes after
        for (Clock& clock : core.clock) join(clock, flag.payload);
}

void pipe_barrier(Pipe pipe, int line)
{
    if (dropped(line)) return;
    Core& core = *machine.core;
    trace_mark(pipe == Pipe::ALL ? "ALL" : name_of(pipe), "PipeBarrier", line);
    if (pipe != Pipe::ALL) {
        if (!core.has(pipe)) misuse("wrong_core", line, "%s has no pipe %s", core_name(core.index), name_of(pipe));
        core.clock[int(pipe)][core.index * pipes + int(pipe)] = core.issued[int(pipe)];
        if (schedule.on()) schedule.barrier(pipe);
        return;
    }
    if (schedule.on()) let_others_go_first(), schedule.drain();
    Clock all{};
    for (int p = 0; p < pipes; ++p) join(all, finished(core, Pipe(p)));
    for (Clock& clock : core.clock) clock = all;
}

}  // namespace tile_sim
