// Where blocks meet: barriers of all cores, signals from one vector core to another, turns in the order of the blocks, groups.
//
// On the hardware most of these write numbers into a workspace in GM and read them again and again. Here a workspace is a name under
// which cores meet; what has to be true of it (its size, zeros where the vendor asks for them) is checked.
#include <cstring>

#include "schedule.h"

namespace tile_sim
{
namespace
{

struct Barrier {
    int64_t arrived = 0, round = 0;
    std::vector<Known> arriving, passed;
};
struct Signal {
    bool set = false;
    Known known;
    int line = 0;
};
struct Sequence {
    std::map<int64_t, int64_t> waits, passes;  // of each vector core that has begun
    std::vector<Known> known;
    int line = 0;
};
struct Group {
    std::map<int64_t, std::vector<Known>> arrivals;
    std::map<int64_t, size_t> waits;
};
std::map<int64_t, Barrier> barriers;  // by the address of a workspace; those of the hardware are below 0
std::map<int64_t, Signal> signals;
std::map<int64_t, Sequence> sequences;
std::map<int64_t, Group> groups;

constexpr int64_t all_cores = -1, all_vector_cores = -2;
constexpr int64_t slot = 32;  // bytes of a core in a workspace

int64_t vector_count() { return machine.settings.launch * machine.vector_cores(); }

// What this core has issued has finished, and goes with what it tells the others.
Known everything(int line)
{
    pipe_barrier(Pipe::ALL, line);
    return {machine.block, machine.core->clock[0], machine.core->others};
}

void meet(int64_t where, int64_t cores, int line, const std::string& what)
{
    Barrier& barrier = barriers[where];
    const Known mine = everything(line);
    needs_all_blocks(line);
    trace_mark("S", "SyncAll", line, "", {where != all_cores, 0, 0, 0});
    barrier.arriving.push_back(mine);
    const int64_t round = barrier.round;
    if (++barrier.arrived == cores) {
        barrier.passed = std::move(barrier.arriving);
        barrier.arriving.clear(), barrier.arrived = 0, ++barrier.round;
    }
    wait_until({[&] { return barrier.round != round; }, [&] { return what; }}, line);
    learn(barrier.passed);
}

void needs_vector_core(const char* name, int line)
{
    if (machine.core->index == AIC) misuse("wrong_core", line, "%s is for vector cores", name);
    needs_all_blocks(line);
}

void needs_room(const char* name, const Operand& gm, int64_t in_gm, const Operand& ub, int64_t in_ub, int line)
{
    if (gm.end - gm.address < in_gm || gm_end(gm.address) - gm.address < in_gm)
        misuse("out_of_bounds", line, "%s needs %lld bytes of workspace in GM, and there are %lld", name, (long long)in_gm,
               (long long)std::min(gm.end, gm_end(gm.address)) - gm.address);
    if (ub.space != Space::UB) misuse("wrong_memory", line, "the second workspace of %s lies in UB", name);
    if (ub.end - ub.address < in_ub)
        misuse("out_of_bounds", line, "%s needs %lld bytes of workspace in UB, and there are %lld", name, (long long)in_ub,
               (long long)(ub.end - ub.address));
}

void needs_zero(const char* name, int64_t address, int line)
{
    int32_t value = 0;
    std::memcpy(&value, machine.gm.at(address), sizeof value);
    if (machine.gm.poisoned(address, address + 4))
        misuse("uninitialised", line, "the workspace of %s in GM has to be zero, and nothing has written it", name);
    if (value) misuse("uninitialised", line, "the workspace of %s in GM has to be zero, and holds %d", name, int(value));
}

// The signal in slot `block` of event `event`.
Signal& signal_of(const char* name, const Operand& gm, const Operand& ub, int64_t block, int64_t event, int64_t& address, int line)
{
    needs_vector_core(name, line);
    if (block < 0 || block >= vector_count() || event < 0)
        misuse("flag_id", line, "%s of block %lld, event %lld: there are %lld vector cores", name, (long long)block, (long long)event,
               (long long)vector_count());
    const int64_t offset = (vector_count() * event + block) * slot;
    needs_room(name, gm, offset + slot, ub, slot, line);
    address = gm.address + offset;
    const auto [at, first] = signals.emplace(address, Signal{});
    if (first) needs_zero(name, address, line);
    return at->second;
}

void leave_in_memory(int64_t address, int32_t value)
{
    std::memcpy(machine.gm.at(address), &value, sizeof value);
    machine.gm.poison(address, address + int64_t(sizeof value), false);
}

Sequence& sequence_of(const char* name, const Operand& gm, const Operand& ub, int line)
{
    needs_vector_core(name, line);
    needs_room(name, gm, vector_count() * slot, ub, (vector_count() + 1) * slot, line);
    Sequence& sequence = sequences[gm.address];
    if (std::strcmp(name, "InitDetermineComputeWorkspace") && !sequence.waits.count(block_index()))
        misuse("leftover_flag", line, "%s without InitDetermineComputeWorkspace before it, on the same workspace", name);
    sequence.line = line;
    return sequence;
}

// The cores before this one have passed once more than it has waited, those behind it as often.
bool is_next(const Sequence& sequence, int64_t me)
{
    const int64_t done = sequence.waits.at(me);
    for (int64_t other = 0; other < vector_count(); ++other) {
        const auto found = sequence.passes.find(other);
        const int64_t passes = found == sequence.passes.end() ? 0 : found->second;
        if (other != me && passes < done + (other < me)) return false;
    }
    return true;
}

Group& group_of(const char* name, const GroupShape& shape, int64_t index, int64_t size, int line)
{
    needs_vector_core(name, line);
    if (shape.address % 512) misuse("misaligned", line, "the workspace of a GroupBarrier starts at a multiple of 512 bytes");
    if (gm_end(shape.address) - shape.address < shape.wait * 512)
        misuse("out_of_bounds", line, "a GroupBarrier needs 512 bytes of GM for each core that waits: %lld", (long long)shape.wait * 512);
    if (index < 0 || index >= size)
        misuse("flag_id", line, "%s(%lld): the group has %lld cores", name, (long long)index, (long long)size);
    const auto [at, first] = groups.emplace(shape.address, Group{});
    if (first) needs_zero("GroupBarrier", shape.address, line);
    return at->second;
}

}  // namespace

void forget_meetings() { barriers.clear(), signals.clear(), sequences.clear(), groups.clear(); }

void check_meetings()
{
    machine.core = nullptr;
    for (const auto& [address, signal] : signals)
        if (signal.set)
            machine.report("leftover_flag", "S", signal.line, 0,
                           "no IBWait takes this IBSet: the workspace is not zero when the next launch begins");
    for (const auto& [address, sequence] : sequences)
        for (const auto& [core, waits] : sequence.waits)
            if (const auto passes = sequence.passes.find(core); waits != (passes == sequence.passes.end() ? 0 : passes->second))
                return machine.report("leftover_flag", "S", sequence.line, 0,
                                      text("vector core %lld calls WaitPreBlock and NotifyNextBlock a different number of times",
                                           (long long)core));
}

void sync_all(bool vector_only, int line)
{
    Core& core = *machine.core;
    if (vector_only && core.index == AIC)
        misuse("wrong_core", line, "SyncAll<true> is for vector cores: AIC takes part in SyncAll<false> only");
    const bool vector = vector_only || !machine.has_aic();
    uses_flags_of_sync_all(line);
    meet(vector ? all_vector_cores : all_cores, vector ? vector_count() : vector_count() + machine.settings.launch, line,
         "waits in SyncAll, and not all cores of all blocks come to it");
}

void sync_all_by_memory(Operand gm, Operand ub, int64_t cores, int line)
{
    needs_vector_core("SyncAll with a workspace", line);
    needs_room("SyncAll", gm, vector_count() * slot, ub, vector_count() * slot, line);
    const int64_t taking_part = cores ? cores : vector_count();
    if (cores < 0 || cores > vector_count() || block_index() >= taking_part)
        misuse("wrong_core", line, "vector core %lld takes part in SyncAll of the first %lld, and %lld run", (long long)block_index(),
               (long long)cores, (long long)vector_count());
    if (!barriers.count(gm.address)) needs_zero("SyncAll", gm.address, line);
    meet(gm.address, taking_part, line, text("waits in SyncAll, and not all %lld cores come to it", (long long)taking_part));
}

void block_set(Operand gm, Operand ub, int64_t block, int64_t event, int line)
{
    int64_t address = 0;
    Signal& signal = signal_of("IBSet", gm, ub, block, event, address, line);
    const Known known = everything(line);
    const auto told = [&] {
        return text("waits in IBSet(%lld, %lld): no IBWait takes the one at line %d", (long long)block, (long long)event, signal.line);
    };
    wait_until({[&] { return !signal.set; }, told}, line);
    trace_mark("S", text("IBSet %lld, %lld", (long long)block, (long long)event), line);
    signal = {true, known, line};
    leave_in_memory(address, 1);
}

void block_wait(Operand gm, Operand ub, int64_t block, int64_t event, int line)
{
    int64_t address = 0;
    Signal& signal = signal_of("IBWait", gm, ub, block, event, address, line);
    everything(line);
    const auto told = [&] {
        return text("waits in IBWait(%lld, %lld), and no IBSet of the same workspace, block and event comes", (long long)block,
                    (long long)event);
    };
    wait_until({[&] { return signal.set; }, told}, line);
    trace_mark("S", text("IBWait %lld, %lld", (long long)block, (long long)event), line);
    learn({signal.known});
    signal.set = false;
    leave_in_memory(address, 0);
}

void sequence_begin(Operand gm, Operand ub, int line)
{
    Sequence& sequence = sequence_of("InitDetermineComputeWorkspace", gm, ub, line);
    everything(line);
    sequence.waits[block_index()] = 0, sequence.passes[block_index()] = 0;
}

void sequence_wait(Operand gm, Operand ub, int line)
{
    Sequence& sequence = sequence_of("WaitPreBlock", gm, ub, line);
    everything(line);
    const int64_t me = block_index();
    const auto told = [&] { return text("waits in WaitPreBlock, and not every core before it calls NotifyNextBlock"); };
    wait_until({[&] { return is_next(sequence, me); }, told}, line);
    trace_mark("S", "WaitPreBlock", line);
    learn(sequence.known);
    ++sequence.waits[me];
}

void sequence_pass(Operand gm, Operand ub, int line)
{
    Sequence& sequence = sequence_of("NotifyNextBlock", gm, ub, line);
    const int64_t me = block_index();
    if (++sequence.passes[me] > sequence.waits[me])
        misuse("leftover_flag", line, "NotifyNextBlock without a WaitPreBlock before it");
    trace_mark("S", "NotifyNextBlock", line);
    sequence.known = {everything(line)};  // the cores pass one another in turn, so this is all that is known
}

void group_arrive(GroupShape shape, int64_t index, int line)
{
    Group& group = group_of("Arrive", shape, index, shape.arrive, line);
    trace_mark("MTE3", "GroupBarrier::Arrive", line);
    const Core& core = *machine.core;
    group.arrivals[index].push_back({machine.block, finished(core, Pipe::MTE3), core.others});
    if (schedule.on()) schedule.run_until_now(Pipe::MTE3, false);
}

void group_wait(GroupShape shape, int64_t index, int line)
{
    Group& group = group_of("Wait", shape, index, shape.wait, line);
    const size_t round = group.waits[index];
    const auto over = [&] {
        if (int64_t(group.arrivals.size()) < shape.arrive) return false;
        for (const auto& [core, arrivals] : group.arrivals)
            if (arrivals.size() <= round) return false;
        return true;
    };
    const auto told = [&] { return text("waits in a GroupBarrier, and not all %lld cores arrive", (long long)shape.arrive); };
    wait_until({over, told}, line);
    trace_mark("S", "GroupBarrier::Wait", line);
    std::vector<Known> known;
    for (const auto& [core, arrivals] : group.arrivals) known.push_back(arrivals[round]);
    learn(known);
    ++group.waits[index];
}

}  // namespace tile_sim
