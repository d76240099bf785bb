// Reductions of everything to one number: ReduceSum, ReduceMax, ReduceMin.
#include <algorithm>

#include "rounds.h"
#include "schedule.h"

namespace tile_sim
{
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
