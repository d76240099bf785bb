// The scalar unit's accesses to UB and GM, and how cores of different blocks agree by them.
#include <cstring>

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
    Known told{machine.block, core.clock[int(Pipe::S)], core.others};
    told.clock[size_t(core.index * pipes + int(Pipe::S))] = core.settled;
    machine.releases[event] = told;
}

void acquire(int64_t address)
{
    const uint32_t event = machine.gm.writer[address / granule];
    const auto found = machine.releases.find(event);
    if (found == machine.releases.end()) return;
    const Event& write = machine.events[event];
    Known known = found->second;
    uint32_t& own = known.clock[size_t(write.core * pipes + int(Pipe::S))];
    if (write.block == machine.block) own = std::max(own, write.epoch);
    learn({known});
    machine.core->read.insert(event);
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

uint64_t scalar_read(Operand at, int64_t index, int line)
{
    at = element(at, index);
    const int64_t size = size_of(at.type);
    const bool gm = at.space == Space::GM, anew = gm && lets_go(at.address);
    if (anew) poll(line);
    Instruction read("GetValue", Pipe::S, line);
    if (gm && !read.lies_in_gm(at, at.address, at.address + size)) return 0;  // often read too early, and not used
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
