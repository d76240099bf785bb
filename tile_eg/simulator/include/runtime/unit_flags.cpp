// Unit flags: a bit for each 512 bytes of L0C that hands a block to the fixpipe (1) and back to the products (0). Where a kernel's
// instructions, in their order, find the bits as they need them, no pipe waits for ever; docs/machine.md has the protocol.
#include <algorithm>
#include <string>

#include "machine.h"
#include "mutation.h"

namespace tile_sim
{
namespace
{

constexpr int none = 0, keep = 2, hand_over = 3;

UnitFlag& flag_at(int64_t unit) { return machine.core->units[size_t(unit)]; }

std::string by(const UnitFlag& before)
{
    return text("%s at line %d (unitFlag = %d)", before.name, before.line, int(before.value));
}

std::string nobody_takes(const UnitFlag& before)
{
    if (before.pipe == Pipe::FIX)
        return by(before) + " keeps it; give the last Fixpipe of a result unitFlag = 3";
    return by(before) + " has handed it over, and no Fixpipe with a unit flag has taken it since; give the Mmads of a result "
                        "unitFlag = 2 and the last of them 3, and let a Fixpipe with 3 take all that they write";
}

std::string nobody_gives(const UnitFlag& before)
{
    if (before.pipe == Pipe::FIX)
        return by(before) + " has given it back to Mmad; give the Fixpipes of a result unitFlag = 2 and the last of them 3";
    if (before.pipe == Pipe::M && before.value == keep)
        return by(before) + ", the last to write it, keeps it; give the last Mmad of a result unitFlag = 3";
    if (before.pipe == Pipe::M)
        return by(before) + " writes it without unit flags; give the Mmads of a result unitFlag = 2 and the last of them 3";
    return "no Mmad has written it; give the Mmads of a result unitFlag = 2 and the last of them 3";
}

std::string half_flagged(const UnitFlag& before, const char* way_out)
{
    return by(before) + " was there before, and the Mmads and Fixpipes of one result all have unit flags, or none of them has; " +
           way_out;
}

// What is wrong with a product that meets this flag; empty: nothing.
std::string product_fault(const UnitFlag& before, int value, bool accumulates)
{
    if (value && before.bit == UnitFlag::set) return nobody_takes(before);
    const bool differs = before.pipe == Pipe::M && !before.value == bool(value);
    if (differs && (accumulates || before.bit == UnitFlag::set))
        return half_flagged(before, value ? "give that Mmad unitFlag = 2" : "give this Mmad 2, or 3 if it is the last");
    return "";
}

std::string fixpipe_fault(const UnitFlag& before, int value)
{
    if (value) return before.bit == UnitFlag::clear ? nobody_gives(before) : "";
    const bool flagged = before.bit == UnitFlag::set || (before.pipe == Pipe::M && before.value);
    return flagged ? half_flagged(before, "give this Fixpipe unitFlag = 3, or 2 if another one follows") : "";
}

}  // namespace

void Instruction::unit_flag(int64_t value)
{
    value = mutated_unit_flag(line(), value);
    if (value == 1)
        misuse("field", line(), "unitFlag of %s is 1, which is reserved: 0 is without, 2 keeps the blocks, 3 hands them over",
               event_.name);
    event_.unit_flag = uint8_t(value);
}

void Instruction::check_unit_flags()
{
    const bool product = event_.pipe == Pipe::M;
    if (!product && event_.pipe != Pipe::FIX) return;
    const auto in_l0c = [](const Span& span) { return span.memory->space() == Space::L0C; };
    const bool accumulates = product && std::any_of(reads_.begin(), reads_.end(), in_l0c);
    for (const Span& span : product ? writes_ : reads_)
        if (in_l0c(span)) check_units(span.begin / unit_bytes, (span.end + unit_bytes - 1) / unit_bytes, accumulates);
}

void Instruction::check_units(int64_t begin, int64_t end, bool accumulates)
{
    const bool product = event_.pipe == Pipe::M;
    bool told = false;
    for (int64_t unit = begin; unit < end; ++unit) {
        UnitFlag& flag = flag_at(unit);
        if (flag.pipe == event_.pipe && flag.epoch == event_.epoch) continue;  // another row of the same block
        const std::string fault =
            product ? product_fault(flag, event_.unit_flag, accumulates) : fixpipe_fault(flag, event_.unit_flag);
        if (!fault.empty() && !told) told = true, tell_unit_flag(unit, flag, fault);
        flag = {bit_after(flag.bit), event_.pipe, event_.unit_flag, event_.line, event_.epoch, event_.name};
    }
    if (!product && event_.unit_flag == hand_over && end % 2 && flag_at(end).bit == UnitFlag::set)
        flag_at(end).bit = UnitFlag::either;  // the rest of a fractal of which the first rows alone are wanted
}

// A Fixpipe without unit flags where there are some has been told of; what follows is taken to be right.
UnitFlag::Bit Instruction::bit_after(UnitFlag::Bit before) const
{
    const bool product = event_.pipe == Pipe::M;
    if (event_.unit_flag == none) return product ? before : UnitFlag::clear;
    return (event_.unit_flag == hand_over) == product ? UnitFlag::set : UnitFlag::clear;
}

void Instruction::tell_unit_flag(int64_t unit, const UnitFlag& before, const std::string& fault)
{
    const bool waits = event_.unit_flag && (event_.pipe == Pipe::FIX) != (before.bit == UnitFlag::set);
    const char* const does = waits ? "waits for ever for" : event_.pipe == Pipe::M ? "writes" : "reads";
    machine.report("unit_flag", name_of(event_.pipe), event_.line, before.line,
                   text("%s with unitFlag = %d %s the block at byte %lld of L0C: ", event_.name, int(event_.unit_flag), does,
                        (long long)(unit * unit_bytes)) +
                       fault);
}

void reset_unit_flags()
{
    for (UnitFlag& flag : machine.core->units) flag = UnitFlag{};
}

void check_unit_flags_left()
{
    for (size_t unit = 0; unit < machine.core->units.size(); ++unit) {
        const UnitFlag& flag = machine.core->units[unit];
        if (flag.bit == UnitFlag::set)
            machine.report("unit_flag", name_of(flag.pipe), flag.line, 0,
                           text("the unit flag of the block at byte %lld of L0C is still set when the kernel ends, and the next Mmad "
                                "with one waits for ever: ",
                                (long long)unit * unit_bytes) +
                               nobody_takes(flag));
    }
}

}  // namespace tile_sim
