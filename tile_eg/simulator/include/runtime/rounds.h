// The rounds of a reduction: 256 bytes of its source, of which some lanes take part.
#pragma once
#include <array>
#include <cmath>
#include <cstring>

#include "lanes.h"
#include "rounding.h"

namespace tile_sim
{

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

inline float round_to(double x, DType type) { return type == DType::f16 ? half_to_float(double_to_half(x)) : float(x); }
void store(uint8_t* p, float x, DType type);
void store_index(uint8_t* p, uint32_t index, int64_t size);

// The sum, as a tree, of as many values as a power of two.
float tree_sum(float* values, size_t width, DType type);
float tree_sum(const Gathered& g, DType type);
Best extreme(const Gathered& g, ReduceOp op);
bool beats(const Best& next, const Best& best, ReduceOp op);

constexpr int64_t no_index = 0xffffffff;
void remember_extreme(const Best& best, int64_t index, DType type);

int64_t lane_offset(const VectorSide& side, int64_t round, int64_t lane, int64_t size);
Gathered gather(const Instruction& reduce, const VectorSide& src, const Lanes& lanes, int64_t round, int64_t first, int64_t last);
bool any_active(const Lanes& lanes, int64_t round, int64_t first, int64_t last, int64_t width);
bool empty(const Lanes& lanes);

// Where the lanes of a round lie that take part: visit(offset, bytes).
template <class Visit>
void each_stretch(const VectorSide& side, const Lanes& lanes, int64_t round, int64_t size, Visit visit)
{
    const int64_t width = 256 / size;
    if (whole_round(lanes, round, width) && side.stride.block == 1) return visit(lane_offset(side, round, 0, size), 256);
    for (int64_t i = 0; i < width; ++i)
        if (lane_active(lanes, round, i, width)) visit(lane_offset(side, round, i, size), size);
}

}  // namespace tile_sim
