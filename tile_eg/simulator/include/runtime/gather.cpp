// Collecting elements of UB: by byte offsets, by blocks, by the bits of a pattern.
#include <cstring>

#include "lanes.h"

namespace tile_sim
{
namespace
{

uint32_t offset_at(const Instruction& gather, const Operand& offsets, int64_t i)
{
    if (machine.memory(offsets.space).poisoned(offsets.address + i * 4, offsets.address + i * 4 + 4))
        misuse("uninitialised", gather.line(), "offset %lld of this gather has not been written", (long long)i);
    uint32_t value;
    std::memcpy(&value, gather.data(offsets, i * 4), 4);
    return value;
}

void check_offset(const Instruction& gather, const char* name, int64_t offset, int64_t to)
{
    if (offset % to)
        misuse("misaligned", gather.line(), "%s takes an offset of %lld bytes, which is no multiple of %lld", name, (long long)offset,
               (long long)to);
}

}  // namespace

void vector_gather(VectorSide dst, Operand src, Operand offsets, int64_t base, Lanes lanes, int line)
{
    Instruction gather("Gather", Pipe::V, line);
    const DType type = dst.at.type;
    const int64_t size = size_of(type), width = 256 / size, block = block_of(type), rounds = rounds_of(lanes, width);
    if (!rounds) return;
    for (const Operand* o : {&dst.at, &src, &offsets}) gather.needs(*o, Space::UB, "operand"), gather.align(*o, 32, "operand");
    const auto each = [&](auto&& visit) {  // (destination, index of the offset): offsets lie one after the other
        for (int64_t r = 0; r < rounds; ++r)
            for (int64_t i = 0; i < width; ++i)
                if (lane_active(lanes, r, i, width))
                    visit((r * (lanes.count >= 0 ? 8 : dst.stride.repeat) + i / block) * 32 + i % block * size, r * width + i);
    };
    each([&](int64_t to, int64_t i) {
        gather.reads(offsets, i * 4, 4);
        gather.writes(dst.at, to, size);
    });
    each([&](int64_t, int64_t i) {
        const int64_t from = base + offset_at(gather, offsets, i);
        check_offset(gather, "Gather", from, size);
        gather.reads(src, from, size, Instruction::Poison::carry);
    });
    gather.keeps_apart();
    gather.check();
    gather.sized(lanes.count >= 0 ? lanes.count * size / 16 : rounds * 16, size, 0, lanes.count >= 0);
    gather.counts("vector", rounds * 256);
    Memory& ub = machine.memory(Space::UB);
    each([&](int64_t to, int64_t i) {
        const int64_t from = base + offset_at(gather, offsets, i);
        std::memcpy(gather.data(dst.at, to), gather.data(src, from), size_t(size));
        if (ub.poisoned(src.address + from, src.address + from + size))
            ub.poison(dst.at.address + to, dst.at.address + to + size, true);
    });
}

// Eight blocks a round, at eight offsets.
void vector_gather_blocks(Operand dst, Operand src, Operand offsets, int64_t repeat, Stride stride, int line)
{
    Instruction gather("Gatherb", Pipe::V, line);
    if (!repeat) return;
    for (const Operand* o : {&dst, &src, &offsets}) gather.needs(*o, Space::UB, "operand"), gather.align(*o, 32, "operand");
    const auto to = [&](int64_t i) { return (i / 8 * stride.repeat + i % 8 * stride.block) * 32; };
    gather.reads(offsets, 0, repeat * 32);
    for (int64_t i = 0; i < repeat * 8; ++i) {
        check_offset(gather, "Gatherb", offset_at(gather, offsets, i), 32);
        gather.reads(src, offset_at(gather, offsets, i), 32, Instruction::Poison::carry);
        gather.writes(dst, to(i), 32);
    }
    gather.keeps_apart();
    gather.check();
    gather.counts("vector", repeat * 256);
    Memory& ub = machine.memory(Space::UB);
    for (int64_t i = 0; i < repeat * 8; ++i) {
        const int64_t from = offset_at(gather, offsets, i);
        std::memcpy(gather.data(dst, to(i)), gather.data(src, from), 32);
        for (int64_t e = 0; e < 32; e += granule)
            if (ub.poisoned(src.address + from + e, src.address + from + e + granule))
                ub.poison(dst.address + to(i) + e, dst.address + to(i) + e + granule, true);
    }
}

namespace
{

// The hardware's patterns: all even lanes, all odd ones, one of each four, all.
bool fixed_pattern(int64_t pattern, int64_t lane)
{
    if (pattern <= 2) return lane % 2 == pattern - 1;
    return pattern == 7 || lane % 4 == pattern - 3;
}

}  // namespace

uint64_t vector_gather_mask(Operand dst, Operand src, const Operand* pattern, GatherMaskShape s, int line)
{
    Instruction gather("GatherMask", Pipe::V, line);
    const int64_t size = size_of(src.type), block = block_of(src.type), round = 256 / size;
    const int64_t lanes = s.lanes < 0 ? round : s.lanes;
    machine.core->mask_counts = false, machine.core->mask[0] = machine.core->mask[1] = ~uint64_t(0);
    if (!s.repeat || !lanes) return 0;
    gather.needs(dst, Space::UB, "destination"), gather.needs(src, Space::UB, "source");
    gather.align(dst, 32, "destination"), gather.align(src, 32, "source");
    if (pattern) gather.needs(*pattern, Space::UB, "pattern"), gather.align(*pattern, 32, "pattern");
    const auto from = [&](int64_t r, int64_t i) {
        return (r * s.src_stride + i / block * s.block_stride) * 32 + i % block * size;
    };
    for (int64_t r = 0; r < s.repeat; ++r) {
        if (pattern) gather.reads(*pattern, r * s.pattern_stride * 32, (lanes + 7) / 8);
        for (int64_t i = 0; i < lanes; ++i) gather.reads(src, from(r, i), size, Instruction::Poison::carry);
    }
    const auto taken = [&](int64_t r, int64_t i) {
        if (!pattern) return fixed_pattern(s.fixed, i % round);
        return (*gather.data(*pattern, r * s.pattern_stride * 32 + i / 8) >> (i % 8) & 1) != 0;
    };
    int64_t kept = 0;
    for (int64_t r = 0; r < s.repeat; ++r)
        for (int64_t i = 0; i < lanes; ++i) kept += taken(r, i);
    gather.writes(dst, 0, kept * size);
    gather.check();
    gather.counts("vector", s.repeat * lanes * size);
    Memory& ub = machine.memory(Space::UB);
    std::vector<uint8_t> bytes;
    std::vector<char> empty;
    for (int64_t r = 0; r < s.repeat; ++r)
        for (int64_t i = 0; i < lanes; ++i) {
            if (!taken(r, i)) continue;
            const uint8_t* element = gather.data(src, from(r, i));
            bytes.insert(bytes.end(), element, element + size);
            empty.push_back(ub.poisoned(src.address + from(r, i), src.address + from(r, i) + size));
        }
    if (kept) std::memcpy(gather.data(dst), bytes.data(), bytes.size());
    for (int64_t i = 0; i < kept; ++i)
        if (empty[size_t(i)]) ub.poison(dst.address + i * size, dst.address + (i + 1) * size, true);
    return uint64_t(kept);
}

}  // namespace tile_sim
