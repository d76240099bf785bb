// Flags between cores: of one block (modes 1, 2 and 4), and of all blocks (mode 0). Each core counts the sets that reach it.
#include <algorithm>

#include "schedule.h"

namespace tile_sim
{
namespace
{

struct EarlySet {  // of mode 0: blocks that begin later have it too
    int64_t id;
    int core, line;
    Known known;
};
std::vector<EarlySet> early_sets;
int line_of_sync_all = 0,
    line_of_its_flags = 0;  // where a launch calls SyncAll, and where it sets one of the flags that SyncAll uses

void check_against_sync_all(int line)
{
    if (line_of_sync_all && line_of_its_flags)
        machine.report("flag_id", "", line, line == line_of_sync_all ? line_of_its_flags : line_of_sync_all,
                       text("the cross-core flags 11 to 14 are used by SyncAll (line %d), and by the kernel itself (line %d)",
                            line_of_sync_all, line_of_its_flags));
}

void check_cross(int64_t id, int line)
{
    if (!machine.has_flags()) misuse("cross_flag", line, "kernels of type AIC_ONLY and AIV_ONLY have no flags between cores");
    if (id < 0 || id >= cross_ids) misuse("flag_id", line, "cross-core flag id %lld: there are 0 to 15", (long long)id);
    if (id < 11 || id > 14 || line_of_its_flags) return;
    line_of_its_flags = line;
    check_against_sync_all(line);
}

// Whether a set of core `from` counts for core `to` of the same block.
bool counts(int mode, int from, int to)
{
    if (mode == 2) return (from == AIC) != (to == AIC);
    return (mode == 1 && from != AIC && to != AIC) || (mode == 0 && (from == AIC) == (to == AIC));
}

// Mode 4 (architecture 3510) is between AIC and one vector core, and has flags of its own: AIC counts those of the second vector
// core from 16 on. Here they come after the flags of the other modes.
int single_setter(const Core& core, int64_t id) { return core.index != AIC ? AIC : id - cross_ids < 16 ? AIV0 : AIV1; }

void check_mode_4(int line)
{
    if (machine.settings.architecture != 3510)
        misuse("unsupported", line, "CrossCoreSetFlag knows the modes 0, 1 and 2 on this architecture");
    if (!machine.has_flags() || machine.vector_cores() != 2)
        misuse("cross_flag", line, "mode 4 is for kernels of one cube core and two vector cores");
}

int64_t single_flag(const Core& core, int64_t id, int line)
{
    if (id < 0 || id % 16 > 10 || id > (core.index == AIC ? 26 : 10))
        misuse("flag_id", line, "cross-core flag id %lld: mode 4 has 0 to 10, and on AIC 16 to 26 for the second vector core",
               (long long)id);
    return cross_ids + id;
}

// The cores that all have to set a flag of `core` before it counts.
std::vector<uint32_t> setters(const Core& core, int64_t id)
{
    if (id >= cross_ids) return {key_of(machine.block, single_setter(core, id))};
    const int mode = core.cross[id].mode;
    std::vector<uint32_t> keys;
    const uint32_t first = mode == 0 ? 0 : machine.block, last = mode == 0 ? uint32_t(machine.settings.launch) : first + 1;
    for (uint32_t block = first; block < last; ++block)
        for (const Core& other : machine.cores)
            if (other.present && counts(mode, other.index, core.index)) keys.push_back(key_of(block, other.index));
    return keys;
}

bool has_set(const CrossFlag& flag, uint32_t key)
{
    const auto sets = flag.from.find(key);
    return sets != flag.from.end() && !sets->second.empty();
}

void deliver(Core& to, int64_t id, int mode, int core, const Known& known, int line)
{
    CrossFlag& flag = to.cross[id];
    if (flag.mode != mode)
        for (const auto& [key, sets] : flag.from)
            if (!sets.empty())
                misuse("cross_flag", line,
                       "cross-core flag %lld of %s is set in mode %d while a set in mode %d (line %d) is pending",
                       (long long)id % cross_ids, core_name(to.index), mode, flag.mode, flag.line);
    flag.mode = mode, flag.line = line;
    auto& sets = flag.from[key_of(known.block, core)];
    sets.push_back(known);
    if (sets.size() > 15)
        misuse("cross_flag", line, "cross-core flag %lld of %s counts beyond 15", (long long)id % cross_ids, core_name(to.index));
}

// The sets of one core are unordered among themselves: what a wait may rely on is what all pending ones carry.
Known take(std::deque<Known>& pending)
{
    Known sure = pending.front();
    for (const Known& set : pending)
        for (size_t i = 0; i < set.clock.size(); ++i) sure.clock[i] = std::min(sure.clock[i], set.clock[i]);
    const Clock oldest = pending.front().clock;
    pending.pop_front();
    for (Known& set : pending) join(set.clock, oldest);
    return sure;
}

std::string missing_in_block(const Core& core, int64_t id)
{
    std::string names;
    const CrossFlag& flag = core.cross[id];
    for (const Core& other : machine.cores)
        if (other.present && counts(flag.mode, other.index, core.index) && !has_set(flag, key_of(machine.block, other.index)))
            names += std::string(names.empty() ? "" : " and ") + (&other == &core ? "itself" : core_name(other.index)) +
                     (other.finished    ? " (which has ended)"
                      : &other == &core ? ""
                                        : text(" (which waits at line %d)", other.waiting_line));
    return names.empty() ? "any core" : names;
}

std::string missing(const Core& core, int64_t id)
{
    const CrossFlag& flag = core.cross[id];
    if (id >= cross_ids) return core_name(single_setter(core, id));
    if (flag.mode != 0) return missing_in_block(core, id);
    std::vector<uint32_t> left = setters(core, id);
    const size_t all = left.size();
    left.erase(std::remove_if(left.begin(), left.end(), [&](uint32_t key) { return has_set(flag, key); }), left.end());
    return text("%zu of the %zu cores that have to (%s of block %u, ..)", left.size(), all, core_name(int(left[0] % most_cores)),
                left[0] / most_cores);
}

}  // namespace

uint32_t key_of(uint32_t block, int core) { return block * most_cores + uint32_t(core); }

void forget_cross_flags() { early_sets.clear(), line_of_sync_all = line_of_its_flags = 0; }

void uses_flags_of_sync_all(int line)
{
    if (!line_of_sync_all) line_of_sync_all = line, check_against_sync_all(line);
}

void join_cross_flags(Core& core)
{
    for (const EarlySet& set : early_sets)
        if (counts(0, set.core, core.index)) deliver(core, set.id, 0, set.core, set.known, set.line);
}

bool ready(const Core& core, int64_t id)
{
    const CrossFlag& flag = core.cross[id];
    const std::vector<uint32_t> keys = setters(core, id);
    return !keys.empty() && std::all_of(keys.begin(), keys.end(), [&](uint32_t key) { return has_set(flag, key); });
}

void learn(const std::vector<Known>& known)
{
    Core& core = *machine.core;
    Foreign all;
    for (const Known& k : known) {
        join(all[k.block], k.clock);
        if (k.others && k.others != core.others)
            for (const auto& [block, clock] : *k.others) join(all[block], clock);
    }
    const auto own = all.find(machine.block);
    if (own != all.end()) {
        for (Clock& clock : core.clock) join(clock, own->second);
        all.erase(own);
    }
    if (all.empty()) return;
    if (core.others)
        for (const auto& [block, clock] : *core.others) join(all[block], clock);
    core.others = std::make_shared<const Foreign>(std::move(all));
}

namespace
{
void wait_for_flag(int mode, Pipe pipe, int64_t id, int line);
}

void set_between(Pipe pipe, int64_t id, int line)
{
    Core& core = *machine.core;
    id = single_flag(core, id, line) - cross_ids;
    const bool second = core.index == AIC ? id >= 16 : core.index == AIV1;
    Core& to = machine.cores[core.index != AIC ? AIC : second ? AIV1 : AIV0];
    trace_mark(name_of(pipe), text("CrossCoreSetFlag %lld", (long long)id), line, "", {4, 0, 0, 0});
    const bool early = core.last[int(pipe)] && set_early(line);
    deliver(to, cross_ids + id % 16 + (core.index != AIC && second ? 16 : 0), 4, core.index,
            {machine.block, finished(core, pipe, early), core.others}, line);
    if (schedule.on()) schedule.run_until_now(pipe, early);
}

bool has_come(int64_t id) { return ready(*machine.core, cross_ids + id); }

void cross_set(int mode, Pipe pipe, int64_t id, int line)
{
    if (dropped(line)) return;
    id = mutated_id(line, id);
    if (!machine.core->has(pipe)) misuse("wrong_core", line, "%s has no pipe %s", core_name(machine.core->index), name_of(pipe));
    if (mode == 4) return check_mode_4(line), set_between(pipe, id, line);
    check_cross(id, line);
    Core& core = *machine.core;
    if (mode > 2) misuse("unsupported", line, "CrossCoreSetFlag knows the modes 0, 1 and 2 on this architecture");
    if (mode == 1 && core.index == AIC) misuse("wrong_core", line, "mode 1 is between the vector cores of a block");
    trace_mark(name_of(pipe), text("CrossCoreSetFlag %lld", (long long)id), line, "", {mode, 0, 0, 0});
    const bool early = core.last[int(pipe)] && set_early(line);
    const Known known{machine.block, finished(core, pipe, early), core.others};
    each_core([&](uint32_t block, Core& other) {
        if (counts(mode, core.index, other.index) && (mode == 0 || block == machine.block))
            deliver(other, id, mode, core.index, known, line);
    });
    if (mode == 0) needs_all_blocks(line);
    if (mode == 0 && blocks_to_come()) early_sets.push_back({id, core.index, line, known});
    if (schedule.on()) mode == 2 ? schedule.cross_set(pipe, id, early) : schedule.run_until_now(pipe, early);
}

void cross_wait(int mode, Pipe pipe, int64_t id, int line)
{
    if (dropped(line)) return;
    id = mutated_id(line, id);
    if (mode == 4) return check_mode_4(line), wait_between(id, line, pipe);
    check_cross(id, line);
    wait_for_flag(mode, pipe, id, line);
}

void wait_between(int64_t id, int line, Pipe pipe) { wait_for_flag(4, pipe, single_flag(*machine.core, id, line), line); }

namespace
{

// On 2201 the wait holds the issue of everything behind it; on 3510 that of its pipe, unless that is S.
void wait_for_flag(int mode, Pipe pipe, int64_t id, int line)
{
    Core& core = *machine.core;
    const bool one_pipe = machine.settings.architecture == 3510 && pipe != Pipe::S;
    const auto what = [&] {
        return text("waits%s for cross-core flag %lld, and no set of it comes from %s", one_pipe ? "" : ", with all its pipes,",
                    (long long)id % cross_ids, missing(core, id).c_str());
    };
    wait_until({[&] { return ready(core, id); }, what}, line);
    CrossFlag& flag = core.cross[id];
    if (schedule.on() && flag.mode == 2) schedule.cross_wait(id);
    const long long number = mode == 4 ? id - cross_ids : id;
    trace_mark(one_pipe ? name_of(pipe) : "S", text("CrossCoreWaitFlag %lld", number), line, "", {flag.mode, 0, 0, 0});
    std::vector<Known> known;
    for (uint32_t key : setters(core, id)) known.push_back(take(flag.from[key]));
    const auto before = core.clock;
    learn(known);
    for (int p = 0; one_pipe && p < pipes; ++p)
        if (p != int(pipe)) core.clock[size_t(p)] = before[size_t(p)];
}

}  // namespace

}  // namespace tile_sim
