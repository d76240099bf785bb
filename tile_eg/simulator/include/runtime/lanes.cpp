// Masks, repeats and strides of vector instructions.
#include "lanes.h"

#include <algorithm>

namespace tile_sim
{
namespace
{

// Where lane `i` of round `r` lies at one operand.
int64_t place(const VectorSide& side, int64_t r, int64_t i)
{
    const int64_t block = block_of(side.at.type);
    return (r * side.stride.repeat + i / block * side.stride.block) * block + i % block;
}

bool continues(const Run& run, const Run& next, int operands)
{
    if (run.repeat != next.repeat) return false;
    for (int o = 0; o < operands; ++o)
        if (run.at[size_t(o)] + run.count != next.at[size_t(o)]) return false;
    return true;
}

void append(std::vector<Run>& runs, const Run& next, int operands)
{
    if (!runs.empty() && continues(runs.back(), next, operands))
        runs.back().count += next.count;
    else
        runs.push_back(next);
}

// The very same elements, and no round meets another.
bool in_place(const VectorSide& dst, const VectorSide& src, int64_t last_round)
{
    const bool same = dst.at.address == src.at.address && size_of(dst.at.type) == size_of(src.at.type) &&
                      dst.stride.block == src.stride.block && dst.stride.repeat == src.stride.repeat;
    return same && (last_round == 0 || dst.stride.repeat >= 8 * dst.stride.block);
}

}  // namespace

int64_t rounds_of(const Lanes& lanes, int64_t width)
{
    const int64_t first = lanes.count >= 0 ? lanes.count : lanes.total;
    return first >= 0 ? (first + width - 1) / width : lanes.repeat;
}

bool whole_round(const Lanes& lanes, int64_t round, int64_t width)
{
    if (lanes.total >= 0) return (round + 1) * width <= lanes.total;
    const uint64_t last = width % 64 ? (uint64_t(1) << width % 64) - 1 : ~uint64_t(0);
    return lanes.each >= 0 || (width <= 64 ? (lanes.mask[0] & last) == last : (lanes.mask[0] & lanes.mask[1]) == ~uint64_t(0));
}

std::vector<Run> runs_of(const Lanes& lanes, const VectorSide* sides, int operands)
{
    std::vector<Run> runs;
    if (lanes.count >= 0) {
        if (lanes.count) runs.push_back({{0, 0, 0}, lanes.count, 0});
        return runs;
    }
    int64_t width = 1;
    for (int o = 0; o < operands; ++o) width = std::max(width, size_of(sides[o].at.type));
    width = lanes.each >= 0 ? lanes.each : std::min<int64_t>(128, 256 / width);
    int64_t block = width;  // lanes that lie together at every operand
    for (int o = 0; o < operands; ++o) block = std::min(block, block_of(sides[o].at.type));
    for (int64_t r = 0; r < rounds_of(lanes, width); ++r) {
        const bool whole = whole_round(lanes, r, width);
        for (int64_t i = 0, next = 0; i < width; i = next) {
            next = whole ? std::min(width, i + block) : i + 1;
            if (!whole && !lane_active(lanes, r, i, width)) continue;
            Run run{{0, 0, 0}, next - i, r};
            for (int o = 0; o < operands; ++o) run.at[size_t(o)] = place(sides[o], r, i);
            append(runs, run, operands);
        }
    }
    return runs;
}

namespace
{

int64_t widest(const VectorSide* sides, int operands)
{
    int64_t size = 1;
    for (int o = 0; o < operands; ++o) size = std::max(size, size_of(sides[o].at.type));
    return size;
}

// In 1/16: a number of elements may leave a part of its last repeat.
int64_t repeats_of(const Lanes& lanes, const VectorSide* sides, int operands)
{
    const int64_t in_a_row = lanes.count >= 0 ? lanes.count : lanes.each >= 0 ? lanes.repeat * lanes.each : lanes.total;
    return in_a_row < 0 ? lanes.repeat * 16 : in_a_row * widest(sides, operands) / 16;
}

// Whether two operands that are read start round `r` in one half of 512 bytes of UB, where reading both takes twice as long.
bool same_group(const VectorSide* sides, int operands, int first, int64_t r)
{
    const auto group = [&](int o) { return (sides[o].at.address + r * sides[o].stride.repeat * 32) % 512 / 256; };
    for (int a = first; a < operands; ++a)
        for (int b = a + 1; b < operands; ++b)
            if (group(a) == group(b)) return true;
    return false;
}

// In how many of its rounds they do, in sixteenths.
int64_t conflicts(const Lanes& lanes, const VectorSide* sides, int operands, bool reads_dst)
{
    const int64_t rounds = lanes.count >= 0 ? 1 : std::max<int64_t>(1, lanes.repeat);
    int64_t meeting = 0;
    for (int64_t r = 0; r < rounds; ++r) meeting += same_group(sides, operands, reads_dst ? 0 : 1, r);
    return meeting * 16 / rounds;
}

// Whether what is written in round `r` is in the way of a source: some of its 8 blocks of 32 bytes lie in banks that are read then.
// A bank is a number of 32 bytes modulo 512 in one of UB's 64 KB. Where the first blocks share theirs the hardware writes a round
// later, to the banks that nobody reads (asc-devkit, bank_conflict_ub, scenarios 4 to 6).
bool in_the_way(const VectorSide* sides, int operands, int64_t r)
{
    const auto at = [&](int o) { return sides[o].at.address + r * sides[o].stride.repeat * 32; };
    for (int o = 1; o < operands; ++o) {
        const int64_t apart = (at(0) - at(o)) % 512 / 32;
        if (at(0) / 65536 == at(o) / 65536 && apart % 8) return true;
    }
    return false;
}

int64_t writes_in_the_way(const Lanes& lanes, const VectorSide* sides, int operands)
{
    const int64_t rounds = lanes.count >= 0 ? 1 : std::max<int64_t>(1, lanes.repeat);
    int64_t meeting = 0;
    for (int64_t r = 0; r < rounds; ++r) meeting += in_the_way(sides, operands, r);
    return meeting * 16 / rounds;
}

// How far apart the blocks of a round lie that is written, in blocks of 32 bytes less one, as far as banks can tell: 0 is in a row.
int64_t blocks_apart(const Lanes& lanes, const VectorSide* sides)
{
    return lanes.count >= 0 ? 0 : (sides[0].stride.block + 15) % 16;
}

}  // namespace

VectorInstruction::VectorInstruction(const char* name, int line, const Lanes& lanes, const VectorSide* sides, int operands,
                                     bool reads_dst, Instruction::Poison poison)
    : instruction_(name, Pipe::V, line), sides_(sides), runs_(runs_of(lanes, sides, operands))
{
    static const char* what[] = {"destination", "source", "second source"};
    int64_t bytes = 0;
    for (int o = 0; o < operands; ++o) {
        instruction_.needs(sides[o].at, Space::UB, what[o]);
        if (!runs_.empty()) instruction_.align(sides[o].at, 32, what[o]);
        for (size_t first = 0, last = 0; first < runs_.size(); first = last) {
            const int64_t length = stretch(o, first, last), start = bytes_of(sides[o].at.type, runs_[first].at[size_t(o)]);
            const int64_t each = bytes_of(sides[o].at.type, runs_[first].count);
            if (o || reads_dst) instruction_.reads_in_a_row(sides[o].at, start, length, each, poison);
            if (!o) instruction_.writes_in_a_row(sides[o].at, start, length, each), bytes += length;
        }
    }
    if (runs_.empty()) return;
    for (int o = 1; o < operands; ++o) check_overlap(o);
    unwritten_ = unwritten_results(operands, reads_dst);
    instruction_.check();
    instruction_.sized(repeats_of(lanes, sides, operands), widest(sides, operands),
                       conflicts(lanes, sides, operands, reads_dst) + 256 * writes_in_the_way(lanes, sides, operands) +
                           65536 * blocks_apart(lanes, sides),
                       lanes.count >= 0);
    instruction_.counts("vector", bytes);
}

// Bytes that lie in a row at an operand: those of the runs from `first` on up to `last`, all of one length.
int64_t VectorInstruction::stretch(int operand, size_t first, size_t& last) const
{
    const int64_t count = runs_[first].count;
    const auto goes_on = [&](size_t i) {
        return runs_[i].count == count && runs_[i].at[size_t(operand)] == runs_[i - 1].at[size_t(operand)] + count;
    };
    for (last = first + 1; last < runs_.size() && goes_on(last);) ++last;
    return bytes_of(sides_[operand].at.type, count * int64_t(last - first));
}

// Where the destination holds what is computed from an element that nothing has written.
std::vector<Place> VectorInstruction::unwritten_results(int operands, bool reads_dst) const
{
    std::vector<Place> found;
    for (int o = reads_dst ? 0 : 1; o < operands; ++o) {
        Memory& memory = machine.memory(sides_[o].at);
        const DType from = sides_[o].at.type, to = sides_[0].at.type;
        const auto unwritten = [&](int64_t begin, int64_t end) {
            return memory.poisoned(sides_[o].at.address + bytes_of(from, begin), sides_[o].at.address + bytes_of(from, end));
        };
        int64_t first = INT64_MAX, last = 0;
        for (const Run& run : runs_)
            first = std::min(first, run.at[size_t(o)]), last = std::max(last, run.at[size_t(o)] + run.count);
        if (!unwritten(first, last)) continue;
        for (const Run& run : runs_) {
            const int64_t at = run.at[size_t(o)], into = run.at[0];
            for (int64_t i = 0, end = 0; unwritten(at, at + run.count) && i < run.count; i = end) {
                const bool none = unwritten(at + i, at + i + 1);
                for (end = i + 1; end < run.count && unwritten(at + end, at + end + 1) == none;) ++end;
                if (none) found.push_back({bytes_of(to, into + i), bytes_of(to, into + end)});
            }
        }
    }
    return found;
}

// When all is computed, as the destination may lie where a source does.
VectorInstruction::~VectorInstruction() { keep_unwritten(instruction_, sides_[0].at, unwritten_); }

// A source may be the destination, element for element. What an earlier round wrote, a later one must not read, except for
// the second source with a repeat stride of 0 (or a destination that stays), which is how sums over rounds are made.
void VectorInstruction::check_overlap(int operand) const
{
    const VectorSide &dst = sides_[0], &src = sides_[operand];
    const int64_t out = size_of(dst.at.type), in = size_of(src.at.type);
    const bool sum_over_rounds = operand == 2 && (dst.stride.repeat == 0 || src.stride.repeat == 0);
    if (sum_over_rounds || in_place(dst, src, runs_.empty() ? 0 : runs_.back().repeat)) return;
    int64_t first = INT64_MAX, last = 0;
    for (const Run& run : runs_)
        first = std::min(first, dst.at.address + bytes_of(dst.at.type, run.at[0])),
        last = std::max(last, dst.at.address + bytes_of(dst.at.type, run.at[0] + run.count));
    for (const Run& run : runs_) {
        const int64_t begin = src.at.address + bytes_of(src.at.type, run.at[size_t(operand)]);
        const int64_t end = begin + bytes_of(src.at.type, run.count);
        if (end <= first || begin >= last) continue;
        for (const Run& other : runs_) {
            const int64_t written = dst.at.address + bytes_of(dst.at.type, other.at[0]);
            const int64_t until = written + bytes_of(dst.at.type, other.count);
            if (end <= written || begin >= until) continue;
            if (other.repeat == run.repeat && begin == written && in == out) continue;
            if (other.repeat > run.repeat) continue;
            if (other.repeat == run.repeat && begin == written && runs_.size() == 1 && in > out) continue;
            machine.report(
                "overlap", "V", instruction_.line(), 0,
                text("the source and the destination of this instruction overlap at byte %lld of UB, and not element for element",
                     (long long)std::max(begin, written)));
            return;
        }
    }
}

}  // namespace tile_sim
