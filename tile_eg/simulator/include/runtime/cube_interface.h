// What the Ascend C headers ask of the cube core: the ways into L0A and L0B, the product, the ways out of L0C.
#pragma once
#include "interface.h"

namespace tile_sim
{

struct Load2D {
    int64_t start, repeat, src_stride, dst_gap;
    bool transpose, descending;
};
struct LoadSquare {
    int64_t start, repeat, src_stride, dst_gap, dst_fractal_gap;
    bool descending;
};
struct Load3D {
    int64_t height, width, channels, k_extent, m_extent, k_start, m_start;
    bool transpose;
};
struct MmadShape {
    int64_t m, n, k, unit_flag;
    bool from_bias, init, k_align;
    bool has_bias = false;
    Operand bias;  // in BT
};
struct FixpipeShape {
    int64_t n, m, src_stride, dst_stride, matrices, src_matrix_stride, dst_matrix_stride, unit_flag, quantisation;
    bool relu, row_major, channel_split;
    uint64_t scale = 0;  // for all columns, or
    bool per_column = false;
    Operand scales;  // for each, in L1
};
struct FillShape {
    int64_t repeat, blocks, gap;
    uint64_t bits;
};
void fill(Operand dst, FillShape shape, int line);
void copy_bias(Operand dst, Operand src, Rows rows, int line);
void set_hf32(bool on);
void set_hf32_rounding(bool to_zero);
void load_2d(Operand dst, Operand src, Load2D shape, int line);
void load_square(Operand dst, Operand src, LoadSquare shape, int line);
void load_3d(Operand dst, Operand src, Load3D shape, int line);
void mmad(Operand dst, Operand a, Operand b, MmadShape shape, int line);
void fixpipe(Operand dst, Operand src, FixpipeShape shape, int line);

}  // namespace tile_sim
