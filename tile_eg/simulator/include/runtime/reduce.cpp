// Reductions: of each round (256 bytes), of each block (32 bytes), and of everything. Sums go as a binary tree over
// neighbours, each step rounded to the element type.
#include <array>
#include <cmath>
#include <cstring>

#include "lanes.h"
#include "schedule.h"
#include "rounding.h"

namespace tile_sim
{
namespace
{

float round_to(double x, DType type) { return type == DType::f16 ? half_to_float(double_to_half(x)) : float(x); }

void load(const uint8_t* p, int64_t count, DType type, float* out)
{
    if (type != DType::f16) return void(std::memcpy(out, p, size_t(count) * 4));
    for (int64_t i = 0; i < count; ++i) {
        uint16_t bits;
        std::memcpy(&bits, p + i * 2, 2);
        out[i] = half_to_float(bits);
    }
}

void store(uint8_t* p, float x, DType type)
{
    const uint16_t bits = float_to_half(x);
    if (type == DType::f16)
        std::memcpy(p, &bits, 2);
    else
        std::memcpy(p, &x, 4);
}

struct Best {
    float value;
    uint32_t index;
};

// Lanes of a round; `active` says which take part, where not all do.
struct Gathered {
    size_t count = 0;
    bool all = true;
    std::array<float, 128> values;
    std::array<bool, 128> active;
    bool takes_part(size_t i) const { return all || active[i]; }
};

// The sum of as many values as a power of two. Twice the bits of half and two more are in a float, and of a double the same for float:
// one rounding of a sum is that of the exact sum.
float tree_sum(float* values, size_t width, DType type)
{
    for (; width > 1; width /= 2)
        for (size_t i = 0; i < width / 2; ++i) {
            const float sum = values[2 * i] + values[2 * i + 1];
            values[i] = type == DType::f16 ? half_to_float(float_to_half(sum)) : sum;
        }
    return values[0];
}

float tree_sum(const Gathered& g, DType type)
{
    std::array<float, 128> values;
    for (size_t i = 0; i < g.count; ++i) values[i] = g.takes_part(i) ? g.values[i] : 0.0f;
    return tree_sum(values.data(), g.count, type);
}

Best extreme(const Gathered& g, ReduceOp op)
{
    Best best{0, 0};
    bool any = false;
    for (size_t i = 0; i < g.count; ++i) {
        if (!g.takes_part(i)) continue;
        const float x = g.values[i];
        const bool better = !any || std::isnan(x) || (op == ReduceOp::max ? x > best.value : x < best.value);
        if (better && !(any && std::isnan(best.value))) best = {x, uint32_t(i)};
        any = true;
    }
    return best;
}

int64_t lane_offset(const VectorSide& side, int64_t round, int64_t lane, int64_t size)
{
    const int64_t block = 32 / size;
    return (round * side.stride.repeat + lane / block * side.stride.block) * 32 + lane % block * size;
}

// Where the lanes of a round lie that take part: visit(offset, bytes).
template <class Visit>
void each_stretch(const VectorSide& side, const Lanes& lanes, int64_t round, int64_t size, Visit visit)
{
    const int64_t width = 256 / size;
    if (whole_round(lanes, round, width) && side.stride.block == 1) return visit(lane_offset(side, round, 0, size), 256);
    for (int64_t i = 0; i < width; ++i)
        if (lane_active(lanes, round, i, width)) visit(lane_offset(side, round, i, size), size);
}

// Bytes of UB that a round reads or writes.
struct Touched {
    int64_t round, begin, end;
};

void touch(std::vector<Touched>& all, Touched next)
{
    if (!all.empty() && all.back().round == next.round && all.back().end == next.begin)
        all.back().end = next.end;
    else
        all.push_back(next);
}

// A result may lie in what its own round reads, from its first byte on, or in what an earlier round has read: reductions in
// place are common. What a later round reads must stay.
void check_overlap(const std::vector<Touched>& in, const std::vector<Touched>& out, int line)
{
    for (const Touched& w : out)
        for (const Touched& r : in) {
            if (w.end <= r.begin || w.begin >= r.end || r.round < w.round) continue;
            if (r.round == w.round && r.begin == w.begin) continue;
            return machine.report("overlap", "V", line, 0,
                                  text("the source and the destination of this reduction overlap at byte %lld of UB: a result may "
                                       "take the place of the first elements of its round, or of a round before",
                                       (long long)std::max(w.begin, r.begin)));
        }
}

bool apart(const std::vector<Touched>& a, const std::vector<Touched>& b)
{
    const auto low = [](const auto& all) {
        return std::min_element(all.begin(), all.end(), [](auto& x, auto& y) { return x.begin < y.begin; })->begin;
    };
    const auto high = [](const auto& all) {
        return std::max_element(all.begin(), all.end(), [](auto& x, auto& y) { return x.end < y.end; })->end;
    };
    return a.empty() || b.empty() || high(a) <= low(b) || high(b) <= low(a);
}

// The accesses and checks of a reduction over rounds; `results(round, write)` writes (offset, bytes) of what a round writes.
template <class Results>
void access(Instruction& reduce, const Operand& dst, const VectorSide& src, const Lanes& lanes, Results results)
{
    const int64_t size = size_of(src.at.type), width = 256 / size;
    reduce.needs(dst, Space::UB, "destination"), reduce.needs(src.at, Space::UB, "source");
    reduce.align(src.at, 32, "source");
    std::vector<Touched> in, out;
    for (int64_t r = 0; r < rounds_of(lanes, width); ++r) {
        each_stretch(src, lanes, r, size, [&](int64_t offset, int64_t bytes) {
            const int64_t at = src.at.address + offset;
            reduce.reads_in_a_row(src.at, offset, bytes, size), touch(in, {r, at, at + bytes});
        });
        results(r, [&](int64_t offset, int64_t bytes) {
            reduce.writes(dst, offset, bytes), touch(out, {r, dst.address + offset, dst.address + offset + bytes});
        });
    }
    if (!apart(in, out)) check_overlap(in, out, reduce.line());
    reduce.check();
    reduce.sized(rounds_of(lanes, width) * 16, size, 0, 0);
    reduce.counts("vector", rounds_of(lanes, width) * 256);
}

Gathered gather(const Instruction& reduce, const VectorSide& src, const Lanes& lanes, int64_t round, int64_t first, int64_t last)
{
    const int64_t size = size_of(src.at.type), width = 256 / size, block = 32 / size;
    Gathered g;
    g.count = size_t(last - first), g.all = whole_round(lanes, round, width);
    for (int64_t i = first; i < last; ++i) {
        g.active[size_t(i - first)] = g.all || lane_active(lanes, round, i, width);
        if (g.all && i % block == 0 && i + block <= last) {
            load(reduce.data(src.at, lane_offset(src, round, i, size)), block, src.at.type, &g.values[size_t(i - first)]);
            i += block - 1;
        } else if (g.active[size_t(i - first)]) {
            load(reduce.data(src.at, lane_offset(src, round, i, size)), 1, src.at.type, &g.values[size_t(i - first)]);
        } else {
            g.values[size_t(i - first)] = 0.0f;
        }
    }
    return g;
}

bool any_active(const Lanes& lanes, int64_t round, int64_t first, int64_t last, int64_t width)
{
    if (whole_round(lanes, round, width)) return true;
    for (int64_t i = first; i < last; ++i)
        if (lane_active(lanes, round, i, width)) return true;
    return false;
}

bool empty(const Lanes& lanes)
{
    return lanes.total >= 0 ? lanes.total == 0 : !lanes.repeat || !(lanes.mask[0] | lanes.mask[1]);
}

// The register holds the best of all rounds, and where it lies. It holds nothing of use after counter mode or strides (type i4),
// and no index after ReduceMax and ReduceMin (GetReduceRepeatMaxMinSpr.md).
void remember_extreme(const Best& best, int64_t index, DType type)
{
    uint32_t value = 0;
    store(reinterpret_cast<uint8_t*>(&value), best.value, type);
    machine.core->extreme = uint64_t(index) << 32 | value;
    machine.core->extreme_type = type;
}

constexpr int64_t no_index = 0xffffffff;

bool beats(const Best& next, const Best& best, ReduceOp op)
{
    if (std::isnan(best.value)) return false;
    return std::isnan(next.value) || (op == ReduceOp::max ? next.value > best.value : next.value < best.value);
}

void store_index(uint8_t* p, uint32_t index, int64_t size) { std::memcpy(p, &index, size_t(size)); }

}  // namespace

void reduce_whole(const char* name, ReduceOp op, Operand dst, VectorSide src, int64_t dst_stride, Lanes lanes, Order order,
                  int line)
{
    if (queued(line, [=] { reduce_whole(name, op, dst, src, dst_stride, lanes, order, line); }, dst, src)) return;
    Instruction reduce(name, Pipe::V, line);
    if (empty(lanes)) return;
    const int64_t size = size_of(src.at.type), width = 256 / size, count = rounds_of(lanes, width);
    const bool pair = op != ReduceOp::sum && (order == Order::value_index || order == Order::index_value);
    const bool only_index = op != ReduceOp::sum && order == Order::only_index;
    const int64_t bytes = pair ? 2 * size : only_index ? 4 : size;
    reduce.align(dst, bytes, "destination");
    access(reduce, dst, src, lanes, [&](int64_t r, auto write) { write(r * dst_stride * bytes, bytes); });
    std::vector<Gathered> rounds;
    for (int64_t r = 0; r < count; ++r) rounds.push_back(gather(reduce, src, lanes, r, 0, width));
    Best all{0, 0};
    for (int64_t r = 0; r < count; ++r) {
        uint8_t* out = reduce.data(dst, r * dst_stride * bytes);
        if (op == ReduceOp::sum) {
            store(out, tree_sum(rounds[size_t(r)], src.at.type), src.at.type);
            continue;
        }
        const Best best = extreme(rounds[size_t(r)], op);
        if (!r || beats(best, all, op)) all = {best.value, uint32_t(best.index + r * width)};
        if (only_index)
            store_index(out, best.index, 4);
        else if (pair)
            store(out + (order == Order::index_value ? size : 0), best.value, src.at.type),
                store_index(out + (order == Order::index_value ? 0 : size), best.index, size);
        else
            store(out, best.value, src.at.type);
    }
    const bool in_a_row = lanes.total < 0 && src.stride.block == 1 && src.stride.repeat == 8;
    if (op != ReduceOp::sum) remember_extreme(all, all.index, in_a_row ? src.at.type : DType::i4);
}

// Eight results a round, one for each block; a block without an active lane leaves its result as it was.
void reduce_block(const char* name, ReduceOp op, Operand dst, VectorSide src, int64_t dst_stride, Lanes lanes, int line)
{
    if (queued(line, [=] { reduce_block(name, op, dst, src, dst_stride, lanes, line); }, dst, src)) return;
    Instruction reduce(name, Pipe::V, line);
    if (empty(lanes)) return;
    const int64_t size = size_of(src.at.type), block = 32 / size, width = 256 / size;
    reduce.align(dst, 8 * size, "destination");
    const auto place = [&](int64_t r, int64_t b) { return (r * dst_stride * 8 + b) * size; };
    const auto active = [&](int64_t r, int64_t b) { return any_active(lanes, r, b * block, (b + 1) * block, width); };
    access(reduce, dst, src, lanes, [&](int64_t r, auto write) {
        for (int64_t b = 0; b < 8; ++b)
            if (active(r, b)) write(place(r, b), size);
    });
    for (int64_t r = 0; r < rounds_of(lanes, width); ++r)
        for (int64_t b = 0; b < 8; ++b) {
            if (!active(r, b)) continue;
            const Gathered g = gather(reduce, src, lanes, r, b * block, (b + 1) * block);
            store(reduce.data(dst, place(r, b)), op == ReduceOp::sum ? tree_sum(g, src.at.type) : extreme(g, op).value,
                  src.at.type);
        }
}

// The sums of neighbours: half as many results as lanes; a pair without an active lane leaves its result as it was.
void reduce_pair(const char* name, Operand dst, VectorSide src, int64_t dst_stride, Lanes lanes, int line)
{
    if (queued(line, [=] { reduce_pair(name, dst, src, dst_stride, lanes, line); }, dst, src)) return;
    Instruction reduce(name, Pipe::V, line);
    if (empty(lanes)) return;
    const int64_t size = size_of(src.at.type), width = 256 / size;
    reduce.align(dst, 32, "destination");
    const auto place = [&](int64_t r, int64_t p) { return r * dst_stride * 128 + p * size; };
    const auto active = [&](int64_t r, int64_t p) { return any_active(lanes, r, 2 * p, 2 * p + 2, width); };
    access(reduce, dst, src, lanes, [&](int64_t r, auto write) {
        for (int64_t p = 0; p < width / 2; ++p)
            if (active(r, p)) write(place(r, p), size);
    });
    for (int64_t r = 0; r < rounds_of(lanes, width); ++r)
        for (int64_t p = 0; p < width / 2; ++p)
            if (active(r, p))
                store(reduce.data(dst, place(r, p)), tree_sum(gather(reduce, src, lanes, r, 2 * p, 2 * p + 2), src.at.type),
                      src.at.type);
}

namespace
{

// Scratch elements that the vendor's page asks for (ReduceMax.md); the sum over the first `count` uses none.
int64_t scratch_elements(int64_t count, int64_t size, bool index)
{
    const int64_t block = 32 / size, round = 256 / size;
    const auto up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
    const int64_t first = std::max<int64_t>(1, count / round) * 2, aligned = up(first, block) * block;
    if (!index) return aligned;
    const int64_t second = up(first, round) * 2, end = up(second, block) * block;
    return second <= 2 ? aligned + end : aligned + end + up(up(second, round) * 2, block) * block;
}

// What the instruction leaves in its scratch is nobody's business.
void leave_scratch(const Operand& scratch, int64_t bytes)
{
    machine.memory(Space::UB).poison(scratch.address, scratch.address + bytes, true);
}

}  // namespace

namespace
{

// Sums over the first elements add the rounds one after the other; sums over masked rounds make a tree of them
// (ReduceSum.md).
float sum_of(const std::vector<Gathered>& rounds, bool in_order, DType type)
{
    std::vector<float> sums;
    float total = 0;
    for (size_t r = 0; r < rounds.size(); ++r) {
        const float sum = tree_sum(rounds[r], type);
        total = r ? round_to(double(total) + sum, type) : sum;
        sums.push_back(sum);
    }
    if (in_order) return total;
    size_t width = 1;
    while (width < sums.size()) width *= 2;
    sums.resize(width, 0.0f);
    return tree_sum(sums.data(), width, type);
}

int64_t scratch_bytes(ReduceOp op, const Lanes& lanes, int64_t size, bool index)
{
    const int64_t block = 32 / size, width = 256 / size;
    if (op != ReduceOp::sum) return scratch_elements(lanes.count >= 0 ? lanes.count : rounds_of(lanes, width) * width, size, index) * size;
    return lanes.count >= 0 ? 0 : (rounds_of(lanes, width) + block - 1) / block * block * size;
}

void check_reduce_all(Instruction& reduce, const Operand& dst, const VectorSide& src, const Operand& scratch, const Lanes& lanes,
                      int64_t scratched, int64_t result)
{
    const int64_t size = size_of(src.at.type), width = 256 / size;
    reduce.needs(dst, Space::UB, "destination"), reduce.needs(src.at, Space::UB, "source");
    if (scratched) reduce.needs(scratch, Space::UB, "scratch"), reduce.align(scratch, 32, "scratch");
    reduce.align(src.at, 32, "source"), reduce.align(dst, result, "destination");
    for (int64_t r = 0; r < rounds_of(lanes, width); ++r)
        each_stretch(src, lanes, r, size, [&](int64_t offset, int64_t bytes) { reduce.reads_in_a_row(src.at, offset, bytes, size); });
    if (scratched) reduce.writes(scratch, 0, scratched);
    reduce.writes(dst, 0, result);
    reduce.check();
    reduce.sized(lanes.count >= 0 ? lanes.count * size / 16 : rounds_of(lanes, width) * 16, size, 0, lanes.count >= 0);
    reduce.counts("vector", lanes.count >= 0 ? lanes.count * size : rounds_of(lanes, width) * 256);
}

}  // namespace

void reduce_all(const char* name, ReduceOp op, Operand dst, VectorSide src, Operand scratch, bool index, Lanes lanes, int line)
{
    if (queued(line, [=] { reduce_all(name, op, dst, src, scratch, index, lanes, line); }, dst, src, scratch)) return;
    Instruction reduce(name, Pipe::V, line);
    const DType type = src.at.type;
    const int64_t size = size_of(type), width = 256 / size;
    if (lanes.count >= 0 ? !lanes.count : empty(lanes)) return;
    const int64_t scratched = scratch_bytes(op, lanes, size, index), result = (index ? 2 : 1) * size;
    check_reduce_all(reduce, dst, src, scratch, lanes, scratched, result);
    std::vector<Gathered> rounds;
    for (int64_t r = 0; r < rounds_of(lanes, width); ++r) rounds.push_back(gather(reduce, src, lanes, r, 0, width));
    if (scratched) leave_scratch(scratch, scratched);
    machine.memory(Space::UB).poison(dst.address, dst.address + result, false);
    if (op == ReduceOp::sum) {
        const float total = sum_of(rounds, lanes.count >= 0, type);
        store(reduce.data(dst), total, type);
        machine.core->sum = 0, machine.core->sum_type = type;
        return store(reinterpret_cast<uint8_t*>(&machine.core->sum), total, type);
    }
    Best best = extreme(rounds[0], op);
    for (size_t r = 1; r < rounds.size(); ++r) {
        const Best next = extreme(rounds[r], op);
        if (beats(next, best, op)) best = {next.value, uint32_t(next.index + int64_t(r) * width)};
    }
    store(reduce.data(dst), best.value, type);
    if (index) store_index(reduce.data(dst, size), best.index, size);
    const bool in_a_row = lanes.total < 0 && src.stride.repeat == 8;
    remember_extreme(best, no_index, in_a_row ? type : DType::i4);
}

uint64_t reduced_extreme(DType type, int line)
{
    if (schedule.direct()) schedule.drain();
    if (machine.core->extreme_type != type)
        misuse("uninitialised", line,
               "no ReduceRepeat, ReduceMax or ReduceMin of this element type, in normal mode and without gaps in its source, was "
               "the last on this core");
    return machine.core->extreme;
}

uint64_t reduced_sum(DType type, int line)
{
    if (schedule.direct()) schedule.drain();
    if (machine.core->sum_type != type)
        misuse("uninitialised", line, "no ReduceSum of this element type has run on this core");
    return machine.core->sum;
}

}  // namespace tile_sim
