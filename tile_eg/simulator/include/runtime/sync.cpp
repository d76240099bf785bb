// Flags and barriers, as vector clocks: a set carries what its pipe has finished and knows, a wait takes it over.
#include <algorithm>

#include "schedule.h"

namespace tile_sim
{
namespace
{

// What pipe `pipe` has finished and knows, as a set carries it; `early`: without the last instruction.
Clock finished(const Core& core, Pipe pipe, bool early = false)
{
    Clock clock = core.clock[int(pipe)];
    uint32_t& own = clock[core.index * pipes + int(pipe)];
    own = std::max(own, early && core.last[int(pipe)] ? core.last[int(pipe)] - 1 : core.issued[int(pipe)]);
    return clock;
}

std::string event_name(Pipe src, Pipe dst, int64_t id) { return text("%s_%s, %lld", name_of(src), name_of(dst), (long long)id); }

void check_flag(Pipe src, Pipe dst, int64_t id, int line)
{
    if (id < 0 || id > 7) misuse("flag_id", line, "flag id %lld: an event has the ids 0 to 7", (long long)id);
    if (id > 5) machine.report("flag_id", "", line, 0, text("flag id %lld belongs to the framework: use 0 to 5", (long long)id));
    for (Pipe pipe : {src, dst})
        if (!machine.core->has(pipe))
            misuse("wrong_core", line, "%s has no pipe %s", core_name(machine.core->index), name_of(pipe));
}

void check_cross(int64_t id, int line)
{
    if (!machine.mixed()) misuse("cross_flag", line, "kernels of type AIC_ONLY and AIV_ONLY have no flags between cores");
    if (id < 0 || id > 10)
        misuse("flag_id", line, "cross-core flag id %lld: 0 to 10 are free (11 to 14 are SyncAll's)", (long long)id);
}

Clock least(const std::deque<Clock>& clocks)
{
    Clock result = clocks.front();
    for (const Clock& clock : clocks)
        for (size_t i = 0; i < clock.size(); ++i) result[i] = std::min(result[i], clock[i]);
    return result;
}

// The sets of one core are unordered among themselves: what a wait may rely on is what all pending ones carry.
Clock take(CrossFlag& flag)
{
    const Clock sure = least(flag.pending), oldest = flag.pending.front();
    flag.pending.pop_front();
    for (Clock& clock : flag.pending) join(clock, oldest);
    return sure;
}

bool ready(Core& core, int64_t id)
{
    if (core.index != AIC) return !core.cross[AIC][id].pending.empty();
    for (int aiv = 0; aiv < machine.vector_cores(); ++aiv)
        if (core.cross[AIV0 + aiv][id].pending.empty()) return false;
    return true;
}

}  // namespace

void join(Clock& into, const Clock& other)
{
    for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

void set_flag(Pipe src, Pipe dst, int64_t id, int line)
{
    if (dropped(line)) return;
    id = mutated_id(line, id);
    check_flag(src, dst, id, line);
    Core& core = *machine.core;
    Flag& flag = core.flags[int(src)][int(dst)][id];
    const std::string name = event_name(src, dst, id);
    trace_mark(name_of(src), "SetFlag " + name, line);
    if (flag.set)
        machine.report(
            "double_set", name_of(src), line, flag.set_line,
            text("flag %s is set again before its wait: it was set at line %d, and holds one bit", name.c_str(), flag.set_line));
    else if (core.clock[int(src)][core.index * pipes + int(dst)] < flag.wait_epoch)
        machine.report("double_set", name_of(src), line, flag.wait_line,
                       text("flag %s may be set again before its wait at line %d has run: nothing makes %s wait for %s in "
                            "between; use another "
                            "id, or a flag back",
                            name.c_str(), flag.wait_line, name_of(src), name_of(dst)));
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
    const std::string name = event_name(src, dst, id);
    trace_mark(name_of(dst), "WaitFlag " + name, line);
    if (!flag.set) {
        machine.report("deadlock", name_of(dst), line, 0,
                       text("deadlock: pipe %s of %s waits for flag %s, and no set of it by %s comes before", name_of(dst),
                            core_name(core.index), name.c_str(), name_of(src)));
        throw Stop{};
    }
    lower_flag(src, dst, id, line);
}

void lower_flag(Pipe src, Pipe dst, int64_t id, int line)
{
    Core& core = *machine.core;
    Flag& flag = core.flags[int(src)][int(dst)][id];
    flag.set = false, flag.wait_line = line, flag.wait_epoch = ++core.issued[int(dst)];
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

void cross_set(int mode, Pipe pipe, int64_t id, int line)
{
    if (dropped(line)) return;
    id = mutated_id(line, id);
    check_cross(id, line);
    Core& core = *machine.core;
    if (mode != 2) misuse("unsupported", line, "the simulator knows CrossCoreSetFlag in mode 2 only");
    if (!core.has(pipe)) misuse("wrong_core", line, "%s has no pipe %s", core_name(core.index), name_of(pipe));
    trace_mark(name_of(pipe), text("CrossCoreSetFlag %lld", (long long)id), line);
    const bool early = core.last[int(pipe)] && set_early(line);
    for (Core& other : machine.cores) {
        if (!other.present || (core.index == AIC) == (other.index == AIC)) continue;
        CrossFlag& flag = other.cross[core.index][id];
        flag.pending.push_back(finished(core, pipe, early));
        flag.line = line;
        if (flag.pending.size() > 15)
            misuse("cross_flag", line, "cross-core flag %lld of %s counts beyond 15", (long long)id, core_name(other.index));
    }
    if (schedule.on()) schedule.cross_set(pipe, id, early);
}

void cross_wait(int64_t id, int line)
{
    if (dropped(line)) return;
    id = mutated_id(line, id);
    check_cross(id, line);
    Core& core = *machine.core;
    core.waiting_for = id, core.waiting_line = line;
    while (!ready(core, id)) wait_for_turn();
    core.waiting_for = -1;
    if (schedule.on()) schedule.cross_wait(id);
    trace_mark("S", text("CrossCoreWaitFlag %lld", (long long)id), line);
    Clock known{};
    for (Core& other : machine.cores)
        if (other.present && (core.index == AIC) != (other.index == AIC)) join(known, take(core.cross[other.index][id]));
    for (Clock& clock : core.clock) join(clock, known);  // the wait holds the issue of everything behind it
}

}  // namespace tile_sim
