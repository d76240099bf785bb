// Reductions of each round (256 bytes), of each block (32 bytes) and of pairs. Sums go as a binary tree over neighbours, each step
// rounded to the element type.
#include <algorithm>

#include "rounds.h"
#include "schedule.h"

namespace tile_sim
{
namespace
{

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

}  // namespace tile_sim
