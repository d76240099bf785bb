// Flags between cores: of one block (modes 1 and 2), and of all blocks (mode 0). Each core counts the sets that reach it.
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
int line_of_sync_all = 0, line_of_its_flags = 0;  // where a launch calls SyncAll, and where it sets one of the flags that SyncAll uses

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

// The cores that all have to set a flag of `core` before it counts.
std::vector<uint32_t> setters(const Core& core, int mode)
{
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
                misuse("cross_flag", line, "cross-core flag %lld of %s is set in mode %d while a set in mode %d (line %d) is pending",
                       (long long)id, core_name(to.index), mode, flag.mode, flag.line);
    flag.mode = mode, flag.line = line;
    auto& sets = flag.from[key_of(known.block, core)];
    sets.push_back(known);
    if (sets.size() > 15)
        misuse("cross_flag", line, "cross-core flag %lld of %s counts beyond 15", (long long)id, core_name(to.index));
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
    if (flag.mode != 0) return missing_in_block(core, id);
    std::vector<uint32_t> left = setters(core, 0);
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
    const std::vector<uint32_t> keys = setters(core, flag.mode);
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

void cross_set(int mode, Pipe pipe, int64_t id, int line)
{
    if (dropped(line)) return;
    id = mutated_id(line, id);
    check_cross(id, line);
    Core& core = *machine.core;
    if (mode > 2) misuse("unsupported", line, "CrossCoreSetFlag knows the modes 0, 1 and 2 on this architecture");
    if (mode == 1 && core.index == AIC) misuse("wrong_core", line, "mode 1 is between the vector cores of a block");
    if (!core.has(pipe)) misuse("wrong_core", line, "%s has no pipe %s", core_name(core.index), name_of(pipe));
    trace_mark(name_of(pipe), text("CrossCoreSetFlag %lld", (long long)id), line);
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

void cross_wait(int64_t id, int line)
{
    if (dropped(line)) return;
    id = mutated_id(line, id);
    check_cross(id, line);
    Core& core = *machine.core;
    const auto what = [&] {
        return text("waits, with all its pipes, for cross-core flag %lld, and no set of it comes from %s", (long long)id,
                    missing(core, id).c_str());
    };
    wait_until({[&] { return ready(core, id); }, what}, line);
    CrossFlag& flag = core.cross[id];
    if (schedule.on() && flag.mode == 2) schedule.cross_wait(id);
    trace_mark("S", text("CrossCoreWaitFlag %lld", (long long)id), line);
    std::vector<Known> known;
    for (uint32_t key : setters(core, flag.mode)) known.push_back(take(flag.from[key]));
    learn(known);  // the wait holds the issue of everything behind it
}

}  // namespace tile_sim
