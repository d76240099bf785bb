// Reductions: of each round (256 bytes), of each block (32 bytes), and of everything. Sums go as a binary tree over
// neighbours, each step rounded to the element type.
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

float load(const uint8_t* p, DType type)
{
    if (type == DType::f16) {
        uint16_t bits;
        std::memcpy(&bits, p, 2);
        return half_to_float(bits);
    }
    float value;
    std::memcpy(&value, p, 4);
    return value;
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

// A round: its lanes, the ones that do not take part as empty places.
struct Gathered {
    std::vector<float> values;
    std::vector<char> active;
};

float tree_sum(Gathered g, DType type)
{
    size_t width = 1;
    while (width < g.values.size()) width *= 2;
    g.values.resize(width, 0.0f), g.active.resize(width, 0);
    for (size_t i = 0; i < width; ++i)
        if (!g.active[i]) g.values[i] = 0;
    for (; width > 1; width /= 2)
        for (size_t i = 0; i < width / 2; ++i) g.values[i] = round_to(double(g.values[2 * i]) + g.values[2 * i + 1], type);
    return g.values[0];
}

Best extreme(const Gathered& g, ReduceOp op)
{
    Best best{0, 0};
    bool any = false;
    for (size_t i = 0; i < g.values.size(); ++i) {
        if (!g.active[i]) continue;
        const float x = g.values[i];
        const bool better = !any || std::isnan(x) || (op == ReduceOp::max ? x > best.value : x < best.value);
        if (better && !(any && std::isnan(best.value))) best = {x, uint32_t(i)};
        any = true;
    }
    return best;
}

bool lane_active(const Lanes& lanes, int64_t i) { return (lanes.mask[i / 64] >> (i % 64)) & 1; }

int64_t lane_offset(const VectorSide& side, int64_t round, int64_t lane, int64_t size)
{
    const int64_t block = 32 / size;
    return (round * side.stride.repeat + lane / block * side.stride.block) * 32 + lane % block * size;
}

// The accesses and checks of a reduction over rounds; `results(round, active lanes)` names the bytes that a round writes.
template <class Results>
void access(Instruction& reduce, const Operand& dst, const VectorSide& src, const Lanes& lanes, Results results)
{
    const int64_t size = size_of(src.at.type), width = 256 / size;
    reduce.needs(dst, Space::UB, "destination"), reduce.needs(src.at, Space::UB, "source");
    reduce.align(src.at, 32, "source");
    for (int64_t r = 0; r < lanes.repeat; ++r) {
        for (int64_t i = 0; i < width; ++i)
            if (lane_active(lanes, i)) reduce.reads(src.at, lane_offset(src, r, i, size), size);
        results(r);
    }
    reduce.keeps_apart();
    reduce.check();
    reduce.counts("vector", lanes.repeat * 256);
}

Gathered gather(const Instruction& reduce, const VectorSide& src, const Lanes& lanes, int64_t round, int64_t first, int64_t last)
{
    const int64_t size = size_of(src.at.type);
    Gathered g;
    for (int64_t i = first; i < last; ++i) {
        g.active.push_back(lane_active(lanes, i));
        g.values.push_back(g.active.back() ? load(reduce.data(src.at, lane_offset(src, round, i, size)), src.at.type) : 0.0f);
    }
    return g;
}

bool block_active(const Lanes& lanes, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; ++i)
        if (lane_active(lanes, i)) return true;
    return false;
}

bool empty(const Lanes& lanes) { return !lanes.repeat || !(lanes.mask[0] | lanes.mask[1]); }

void store_index(uint8_t* p, uint32_t index, int64_t size) { std::memcpy(p, &index, size_t(size)); }

}  // namespace

void reduce_whole(const char* name, ReduceOp op, Operand dst, VectorSide src, int64_t dst_stride, Lanes lanes, Order order,
                  int line)
{
    if (queued(line, [=] { reduce_whole(name, op, dst, src, dst_stride, lanes, order, line); }, dst, src)) return;
    Instruction reduce(name, Pipe::V, line);
    if (empty(lanes)) return;
    const int64_t size = size_of(src.at.type);
    const bool pair = op != ReduceOp::sum && (order == Order::value_index || order == Order::index_value);
    const bool only_index = op != ReduceOp::sum && order == Order::only_index;
    const int64_t bytes = pair ? 2 * size : only_index ? 4 : size;
    reduce.align(dst, bytes, "destination");
    access(reduce, dst, src, lanes, [&](int64_t r) { reduce.writes(dst, r * dst_stride * bytes, bytes); });
    std::vector<Gathered> rounds;
    for (int64_t r = 0; r < lanes.repeat; ++r) rounds.push_back(gather(reduce, src, lanes, r, 0, 256 / size));
    for (int64_t r = 0; r < lanes.repeat; ++r) {
        uint8_t* out = reduce.data(dst, r * dst_stride * bytes);
        if (op == ReduceOp::sum) {
            store(out, tree_sum(rounds[size_t(r)], src.at.type), src.at.type);
            continue;
        }
        const Best best = extreme(rounds[size_t(r)], op);
        if (only_index)
            store_index(out, best.index, 4);
        else if (pair)
            store(out + (order == Order::index_value ? size : 0), best.value, src.at.type),
                store_index(out + (order == Order::index_value ? 0 : size), best.index, size);
        else
            store(out, best.value, src.at.type);
    }
}

// Eight results a round, one for each block; a block without an active lane leaves its result as it was.
void reduce_block(const char* name, ReduceOp op, Operand dst, VectorSide src, int64_t dst_stride, Lanes lanes, int line)
{
    if (queued(line, [=] { reduce_block(name, op, dst, src, dst_stride, lanes, line); }, dst, src)) return;
    Instruction reduce(name, Pipe::V, line);
    if (empty(lanes)) return;
    const int64_t size = size_of(src.at.type), block = 32 / size;
    reduce.align(dst, 8 * size, "destination");
    const auto place = [&](int64_t r, int64_t b) { return (r * dst_stride * 8 + b) * size; };
    access(reduce, dst, src, lanes, [&](int64_t r) {
        for (int64_t b = 0; b < 8; ++b)
            if (block_active(lanes, b * block, (b + 1) * block)) reduce.writes(dst, place(r, b), size);
    });
    for (int64_t r = 0; r < lanes.repeat; ++r)
        for (int64_t b = 0; b < 8; ++b) {
            if (!block_active(lanes, b * block, (b + 1) * block)) continue;
            const Gathered g = gather(reduce, src, lanes, r, b * block, (b + 1) * block);
            store(reduce.data(dst, place(r, b)), op == ReduceOp::sum ? tree_sum(g, src.at.type) : extreme(g, op).value,
                  src.at.type);
        }
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

// Rounds are reduced as trees and their results in order.
void reduce_all(const char* name, ReduceOp op, Operand dst, VectorSide src, Operand scratch, bool index, Lanes lanes, int line)
{
    if (queued(line, [=] { reduce_all(name, op, dst, src, scratch, index, lanes, line); }, dst, src, scratch)) return;
    Instruction reduce(name, Pipe::V, line);
    const int64_t size = size_of(src.at.type), round = 256 / size;
    if (!lanes.count) return;
    reduce.needs(dst, Space::UB, "destination"), reduce.needs(src.at, Space::UB, "source"),
        reduce.needs(scratch, Space::UB, "scratch");
    reduce.align(src.at, 32, "source"), reduce.align(scratch, 32, "scratch"),
        reduce.align(dst, index ? 2 * size : size, "destination");
    reduce.reads(src.at, 0, lanes.count * size);
    if (op != ReduceOp::sum) reduce.writes(scratch, 0, scratch_elements(lanes.count, size, index) * size);
    reduce.writes(dst, 0, index ? 2 * size : size);
    std::vector<float> values(size_t(lanes.count));
    reduce.check();
    reduce.counts("vector", lanes.count * size);
    for (int64_t i = 0; i < lanes.count; ++i) values[size_t(i)] = load(reduce.data(src.at, i * size), src.at.type);
    if (op != ReduceOp::sum) leave_scratch(scratch, scratch_elements(lanes.count, size, index) * size);
    machine.memory(Space::UB).poison(dst.address, dst.address + (index ? 2 : 1) * size, false);
    float total = 0;
    Best best{0, 0};
    for (int64_t start = 0; start < lanes.count; start += round) {
        Gathered g;
        g.values.assign(values.begin() + start, values.begin() + std::min(lanes.count, start + round));
        g.active.assign(g.values.size(), 1);
        if (op == ReduceOp::sum) {
            total = start ? round_to(double(total) + tree_sum(g, src.at.type), src.at.type) : tree_sum(g, src.at.type);
            continue;
        }
        const Best next = extreme(g, op);
        if (!start || (op == ReduceOp::max ? next.value > best.value : next.value < best.value) || std::isnan(next.value))
            best = {next.value, next.index + uint32_t(start)};
    }
    store(reduce.data(dst), op == ReduceOp::sum ? total : best.value, src.at.type);
    if (index) store_index(reduce.data(dst, size), best.index, size);
}

}  // namespace tile_sim
