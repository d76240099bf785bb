// What a core knows of itself, its memories, and its scalar unit.
#include "machine.h"
#include "schedule.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace tile_sim
{

Machine machine;

void Core::reset()
{
    for (Clock& c : clock) c.fill(0);
    issued.fill(0), last.fill(0);
    for (auto& from : flags)
        for (auto& to : from)
            for (Flag& flag : to) flag = Flag{};
    for (CrossFlag& flag : cross) flag = CrossFlag{};
    for (int64_t& bytes : allocated) bytes = 0;
    units.assign(size_t(memory[int(Space::L0C)].bytes() / unit_bytes), UnitFlag{});
    waits = nullptr, finished = false, behind = false;
    cache.clear(), let_go.clear(), others = nullptr, read.clear(), settled = 0, poll = Poll{};
    static_cast<Control&>(*this) = Control{};
    saturates = mask_counts = false, mask[0] = mask[1] = ~uint64_t(0);
    compare_mask[0] = compare_mask[1] = 0, compared = 0;
    extreme_type = sum_type = DType::i4;
    for (Memory& m : memory)
        if (m.bytes()) m.forget();
}

bool Core::has(Pipe pipe) const
{
    if (pipe == Pipe::S || pipe == Pipe::MTE2 || pipe == Pipe::MTE3 || pipe == Pipe::ALL) return true;
    return (pipe == Pipe::V) == (index != AIC);
}

bool Core::has(Space space) const { return (space == Space::UB) == (index != AIC); }

void Machine::report(const char* kind, const char* pipe, int line, int other_line, std::string message)
{
    constexpr size_t most = 20;
    if (std::uncaught_exceptions()) return;  // in destructors, after a finding that ended the run: what they find follows from it
    const std::string where = core ? core_name(core->index) : "";
    const bool each_core = !std::strcmp(kind, "deadlock");  // otherwise what one vector core does wrong, the other one does too
    for (const Finding& f : findings)
        if (f.kind == kind && f.line == line && f.other_line == other_line && (!each_core || f.core == where)) return;
    if (findings.size() < most)
        findings.push_back({kind, std::move(message), where, pipe, line, other_line, block});
}

const char* name_of(Pipe pipe)
{
    static const char* names[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "", "ALL"};
    return names[int(pipe)];
}

const char* name_of(Space space)
{
    static const char* names[] = {"GM", "UB", "L1", "L0A", "L0B", "L0C", "BT", "FB", "IX", "L0A_MX", "L0B_MX"};
    return names[int(space)];
}

const char* core_name(int core)
{
    if (core == AIC) return "AIC";
    return machine.vector_cores() == 1 ? "AIV" : core == AIV0 ? "AIV0" : "AIV1";
}

bool is_aic() { return machine.core->index == AIC; }
bool is_aiv() { return machine.core->index != AIC; }
int64_t block_count() { return machine.settings.launch; }
int64_t sub_block_index() { return is_aic() ? 0 : machine.core->index - AIV0; }
int64_t sub_block_count() { return is_aic() ? 1 : machine.vector_cores(); }
int64_t block_index() { return int64_t(machine.block) * sub_block_count() + sub_block_index(); }

void declare_type(KernelType type, int line)
{
    static const char* names[] = {"AIC_ONLY", "AIV_ONLY", "MIX_AIC_1_1", "MIX_AIC_1_2", "MIX_AIC_1_0", "MIX_AIV_1_0"};
    if (type != machine.settings.type)
        misuse("kernel_type", line, "the kernel says KERNEL_TYPE_%s, and is launched as %s", names[int(type)],
               names[int(machine.settings.type)]);
}

void set_atomic(AtomicOp op, DType type, int)
{
    machine.core->atomic = op;
    machine.core->atomic_type = type;
}

void set_pad_value(uint64_t bits)
{
    machine.core->pad_given = true;
    machine.core->pad_value = bits;
}

int64_t allocate(Space space, int64_t bytes, int line)
{
    Core& core = *machine.core;
    if (space == Space::GM) misuse("wrong_memory", line, "no buffer of a TPipe lies in GM");
    const int64_t start = core.allocated[int(space)], most = machine.settings.reservable(space);
    core.allocated[int(space)] = (start + bytes + 31) / 32 * 32;
    if (core.allocated[int(space)] <= most) return start;
    machine.report("capacity", "", line, 0,
                   text("%s holds %lld bytes, and %lld are asked for", name_of(space), (long long)most,
                        (long long)core.allocated[int(space)]));
    if (!machine.settings.lenient) throw Stop{};
    return start;  // others place buffers there that they never touch
}

void reset_allocation(bool managed)
{
    machine.core->managed = managed;
    for (int64_t& bytes : machine.core->allocated) bytes = 0;
}

void restart_allocation(Space space, int64_t at) { machine.core->allocated[int(space)] = at; }

int64_t gm_address(const void* pointer, int line)
{
    if (!pointer) return 0;  // a tensor that is not there: no access to it is within bounds
    const int64_t address = static_cast<const uint8_t*>(pointer) - machine.gm.at(0);
    const bool outside = address < 0 || address > machine.gm.bytes();
    if (outside && machine.settings.lenient) return 0;  // hosts leave pointers unset that their kernels do not follow
    if (outside) misuse("out_of_bounds", line, "the pointer lies outside of GM");
    return address;
}

int64_t gm_end(int64_t address)
{
    for (const Region& region : machine.regions)
        if (address >= region.begin && address < region.end) return region.end;
    return address;
}

uint8_t* gm_pointer(int64_t address) { return machine.gm.at(address); }

uint64_t peek(Operand at, int64_t index, int line)
{
    const int64_t size = size_of(at.type), begin = at.address + index * size;
    if (begin < 0 || begin + size > at.end || begin + size > machine.memory(at.space).bytes())
        misuse("out_of_bounds", line, "element %lld lies outside of the tensor", (long long)index);
    uint64_t bits = 0;
    std::memcpy(&bits, machine.memory(at.space).at(begin), size_t(size));
    return bits;
}

}  // namespace tile_sim
