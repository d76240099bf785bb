// What the lanes of a round hold, their sum and the largest or smallest of them.
#include "rounds.h"

namespace tile_sim
{
namespace
{

void load(const uint8_t* p, int64_t count, DType type, float* out)
{
    if (type != DType::f16) return void(std::memcpy(out, p, size_t(count) * 4));
    for (int64_t i = 0; i < count; ++i) {
        uint16_t bits;
        std::memcpy(&bits, p + i * 2, 2);
        out[i] = half_to_float(bits);
    }
}

}  // namespace

void store(uint8_t* p, float x, DType type)
{
    const uint16_t bits = float_to_half(x);
    if (type == DType::f16)
        std::memcpy(p, &bits, 2);
    else
        std::memcpy(p, &x, 4);
}

// Twice the bits of half and two more are in a float, and of a double the same for float:
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

bool beats(const Best& next, const Best& best, ReduceOp op)
{
    if (std::isnan(best.value)) return false;
    return std::isnan(next.value) || (op == ReduceOp::max ? next.value > best.value : next.value < best.value);
}

void store_index(uint8_t* p, uint32_t index, int64_t size) { std::memcpy(p, &index, size_t(size)); }

int64_t lane_offset(const VectorSide& side, int64_t round, int64_t lane, int64_t size)
{
    const int64_t block = 32 / size;
    return (round * side.stride.repeat + lane / block * side.stride.block) * 32 + lane % block * size;
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

}  // namespace tile_sim
