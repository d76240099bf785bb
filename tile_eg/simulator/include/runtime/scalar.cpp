// The scalar unit's accesses to UB and GM, and how cores of different blocks agree by them.
#include <cstring>
#include <numeric>

#include "schedule.h"

namespace tile_sim
{
namespace
{

// The scalar unit works in order: what it has done is there for its next instruction, and what it has read, for all pipes.
void settle(Core& core, bool for_all)
{
    const int at = core.index * pipes + int(Pipe::S);
    for (int pipe = 0; pipe < pipes; ++pipe)
        if (for_all || pipe == int(Pipe::S))
            core.clock[size_t(pipe)][size_t(at)] = std::max(core.clock[size_t(pipe)][size_t(at)], core.issued[int(Pipe::S)]);
}

// A core that reads what another core's scalar unit wrote knows what that one knew. Its own scalar writes may pass one another, up
// to the last DataSyncBarrier.
void release(uint32_t event)
{
    const Core& core = *machine.core;
    Release told{machine.block, core.clock[int(Pipe::S)], core.heard};
    told.clock[size_t(core.index * pipes + int(Pipe::S))] = core.settled;
    machine.releases[event] = told;
}

void acquire(int64_t address)
{
    Core& core = *machine.core;
    const uint32_t event = machine.gm.writer[address / granule];
    const auto found = machine.releases.find(event);
    if (found == machine.releases.end()) return;
    const Event& write = machine.events[event];
    const auto learn = [&](Clock known) {
        uint32_t& own = known[size_t(write.core * pipes + int(Pipe::S))];
        own = std::max(own, write.epoch);
        return known;
    };
    for (const auto& [block, clock] : found->second.heard) join(core.heard[block], clock);
    if (write.block != machine.block) return join(core.heard[write.block], found->second.clock);
    for (Clock& clock : core.clock) join(clock, learn(found->second.clock));
}

uint32_t work_of(const Core& core)
{
    return std::accumulate(core.issued.begin(), core.issued.end(), 0u) - core.issued[int(Pipe::S)];
}

// Waits for a write to GM after many reads that nothing came between.
void poll(int line)
{
    Core& core = *machine.core;
    if (core.poll.work != work_of(core)) core.poll.work = work_of(core), core.poll.times = 0;
    if (++core.poll.times < core.poll.patience) return;
    if (schedule.on()) misuse("unsupported", line, "an unfavourable order is known for blocks that do not wait for one another");
    core.poll.waits = true, core.poll.writes = machine.gm_writes, core.waiting_line = line;
    while (still_polls(core)) wait_for_turn();
    core.poll.waits = false, core.poll.times = 0;
}

uint64_t load(const Operand& at, int64_t address)
{
    uint64_t bits = 0;
    std::memcpy(&bits, machine.memory(at).at(address), size_t(size_of(at.type)));
    return bits;
}

Operand element(Operand at, int64_t index)
{
    at.address += index * size_of(at.type);
    return at;
}

}  // namespace

bool still_polls(const Core& core) { return core.poll.waits && machine.gm_writes == core.poll.writes; }

uint64_t scalar_read(Operand at, int64_t index, int line)
{
    at = element(at, index);
    const int64_t size = size_of(at.type);
    const bool gm = at.space == Space::GM, anew = gm && lets_go(at.address);
    if (anew) poll(line);
    Instruction read("GetValue", Pipe::S, line);
    if (anew) read.signals();
    read.reads(at, 0, size);
    read.check();
    read.counts("scalar", size);
    settle(*machine.core, true);
    if (anew) acquire(at.address);
    return gm ? cached_read(at, 0, line) : load(at, at.address);
}

void scalar_write(Operand at, int64_t index, uint64_t bits, int line)
{
    at = element(at, index);
    const int64_t size = size_of(at.type);
    Instruction write("SetValue", Pipe::S, line);
    if (at.space == Space::GM) write.signals();
    write.writes(at, 0, size);
    write.check();
    settle(*machine.core, false);
    write.counts("scalar", size);
    if (at.space != Space::GM) return void(std::memcpy(write.data(at), &bits, size_t(size)));
    release(uint32_t(machine.events.size()) - 1);
    cached_write(at, 0, bits, line);
}

uint64_t read_past_cache(Operand at, int line)
{
    poll(line);
    Instruction read("ReadGmByPassDCache", Pipe::S, line);
    read.signals();
    read.reads(at, 0, size_of(at.type));
    read.check();
    read.counts("scalar", size_of(at.type));
    settle(*machine.core, true);
    acquire(at.address);
    return load(at, at.address);
}

void write_past_cache(Operand at, uint64_t bits, int line)
{
    const int64_t size = size_of(at.type);
    Instruction write("WriteGmByPassDCache", Pipe::S, line);
    write.signals();
    write.writes(at, 0, size);
    write.check();
    settle(*machine.core, false);
    write.counts("scalar", size);
    release(uint32_t(machine.events.size()) - 1);
    std::memcpy(write.data(at), &bits, size_t(size));
}

void data_sync_barrier(int) { machine.core->settled = machine.core->issued[int(Pipe::S)]; }

}  // namespace tile_sim
