// The mask register of a vector core. It is scalar state: what an instruction sets or leaves behind is what later
// instructions with isSetMask = false see.
#include <utility>

#include "machine.h"

namespace tile_sim
{
namespace
{

uint64_t first_bits(int64_t n) { return n >= 64 ? ~uint64_t(0) : n <= 0 ? 0 : (uint64_t(1) << n) - 1; }

void reset_mask(Core& core)
{
    core.mask_counts = false;
    core.mask[0] = core.mask[1] = ~uint64_t(0);
}

// 32-bit lanes have 64 bits, 64-bit lanes 32; what lies above has no effect.
Lanes current(const Core& core, int64_t repeat, int64_t width)
{
    Lanes lanes;
    if (core.mask_counts) {
        lanes.total = int64_t(core.mask[0]);
        return lanes;
    }
    lanes.repeat = repeat;
    lanes.mask[0] = width == 8 ? core.mask[0] & first_bits(32) : core.mask[0];
    lanes.mask[1] = width <= 2 ? core.mask[1] : 0;
    return lanes;
}

}  // namespace

void keep_infinities(bool kept) { machine.core->saturates = !kept; }

void set_mask_mode(bool counter) { machine.core->mask_counts = counter; }

void set_mask_bits(uint64_t high, uint64_t low)
{
    machine.core->mask[0] = low;
    machine.core->mask[1] = high;
}

void set_mask_length(int64_t lanes, int64_t width, int line)
{
    Core& core = *machine.core;
    if (core.mask_counts) return set_mask_bits(0, uint64_t(checked(lanes, 0, 0xffffffff, "the mask (a number of elements)", line)));
    checked(lanes, 0, width < 2 ? 128 : 256 / width, "mask", line);
    set_mask_bits(first_bits(lanes - 64), first_bits(lanes));
}

Lanes masked(bool set, MaskArgument mask, int64_t repeat, int64_t width, int line)
{
    Core& core = *machine.core;
    if (set && mask.lanes >= 0) set_mask_length(mask.lanes, width, line);
    if (set && mask.lanes < 0) set_mask_bits(mask.high, mask.low);
    return current(core, repeat, width);
}

// Copy alone counts the elements of each round, and its rounds count too (Copy.md).
Lanes copied(bool set, MaskArgument mask, int64_t repeat, int64_t width, int line)
{
    Lanes lanes = masked(set, mask, repeat, width, line);
    if (lanes.total < 0) return lanes;
    lanes.each = lanes.total, lanes.total = -1, lanes.repeat = repeat;
    return lanes;
}

// The form over the first `count` elements counts, and leaves the register full and in normal mode. With isSetMask = false it takes
// the register as it finds it, and in normal mode one round.
Lanes counted(bool set, int64_t count, int64_t width, int line)
{
    Lanes lanes;
    if (!set) {
        lanes = current(*machine.core, 1, width);
        std::swap(lanes.count, lanes.total);  // in counter mode: the first elements, as many as the register says
        return lanes;
    }
    lanes.count = checked(count, 0, 1 << 24, "count", line);
    if (!is_aic()) reset_mask(*machine.core);
    return lanes;
}

// The vendor's samples put a barrier between what fills the register of comparisons and what reads it (docs/machine.md, clause 3).
void Instruction::check_compare_mask() const
{
    const Event& earlier = machine.events[machine.core->compared];
    if (!reads_compare_mask_ || !machine.core->compared || ordered(earlier, Space::UB)) return;
    machine.report("race", name_of(event_.pipe), event_.line, earlier.line,
                   text("RAW: %s (%s, V) reads the register of comparisons, and %s at line %d, which writes it, may not have finished; "
                        "PipeBarrier<PIPE_V> between line %d and line %d would order them",
                        event_.name, core_name(event_.core), earlier.name, earlier.line, earlier.line, event_.line));
}

}  // namespace tile_sim
