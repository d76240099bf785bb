// What the Ascend C headers ask of the cube core: the ways into L0A and L0B, the product, the ways out of L0C.
#pragma once
#include "interface.h"

namespace tile_sim
{

struct Load2D {
    int64_t start, repeat, src_stride, dst_gap;
    bool transpose, descending;
};
struct ScaleParts {  // scales of a part of a matrix in L1, in fractals of 16 rows and two scales, row by row
    Operand from;
    int64_t x_start, y_start, x_step, y_step, src_stride, dst_stride;
};
struct LoadParts {  // architecture 3510: a part of a matrix, fractal by fractal, each turned where it is asked for
    int64_t m_start, k_start, m_step, k_step, src_stride, dst_stride;
    bool transpose;
    bool scaled = false;
    ScaleParts scales = {};
};
struct LoadSquare {
    int64_t start, repeat, src_stride, dst_gap, dst_fractal_gap;
    bool descending;
};
// A part of the matrix that a filter makes of an image: a row for each place of the filter, a column for each channel block,
// element of the filter and channel, in this order.
struct Load3D {
    int64_t channels, k_extent, m_extent, k_start, m_start, stride_w, stride_h, filter_w, filter_h, dilation_w, dilation_h;
    bool transpose;
};
struct ImageRegister {  // what SetFmatrix, SetLoadDataPaddingValue, SetLoadDataBoundary and SetLoadDataRepeat set
    int64_t height = 0, width = 0, left = 0, right = 0, top = 0, bottom = 0;
    uint64_t padding = 0;
    int64_t boundary = 0;  // bytes of L1 after which its first ones follow; 0: none
    int64_t repeat_stride = 0, repeat_times = 1, repeat_mode = 0;
};
struct FixpipeRegister {  // what SetFixpipePreQuantFlag, SetFixPipeConfig and SetFixpipeNz2ndFlag set
    uint64_t scale = 0;
    Operand scales;
    int64_t matrices = 1, src_matrix_stride = 0, dst_matrix_stride = 0;
    bool scale_given = false, scales_given = false, nd_given = false;
};
struct MmadShape {
    int64_t m, n, k, unit_flag;
    bool from_bias, init, k_align;
    bool has_bias = false;
    Operand bias;  // in BT
    bool scaled = false;  // both operands times their scales
};
enum class Layout : uint8_t { nz, row_major, column_major };
enum class Destinations : uint8_t { one, by_rows, by_columns };
// Strides: of the source from one column block of 16 to the next in rows of 16; of the destination in elements between rows (or
// columns), or in NZ 32-byte blocks between column blocks. Those between matrices: bytes of the source, elements.
struct FixpipeShape {
    int64_t n, m, src_stride, dst_stride, matrices, src_matrix_stride, dst_matrix_stride, unit_flag, quantisation;
    bool relu;
    Layout layout;
    bool channel_split;
    uint64_t scale = 0;  // for all columns, or
    bool per_column = false;
    Operand scales;                                 // for each, in L1 or FB
    Destinations destinations = Destinations::one;  // the UBs of both vector cores, half of the rows or columns each
    int64_t src_row_stride = 1;                     // from row to row of the source, in rows of 16 (column_major)
};
struct FillShape {
    int64_t repeat, blocks, gap;
    uint64_t bits;
};
void fill(Operand dst, FillShape shape, int line);
Operand beside_cube(Operand ub, bool second, int line);  // an operand in the UB of the first or second vector core
void copy_to_vector_core(Operand dst, Operand src, Rows rows, int64_t sub_block, int line);  // L1 to UB
void copy_table(Operand dst, Operand src, Rows rows, int line);                              // into BT or FB
void set_hf32(bool on);
void set_hf32_rounding(bool to_zero);
void load_2d(Operand dst, Operand src, Load2D shape, int line);
void load_parts(Operand dst, Operand src, LoadParts shape, int line);
void load_square(Operand dst, Operand src, LoadSquare shape, int line);
void load_3d(Operand dst, Operand src, Load3D shape, int line);
void load_sparse(Operand dst, Operand src, Operand indices, int64_t start, int64_t repeat, int line);
ImageRegister& image_register();
FixpipeRegister& fixpipe_register();
void mmad(Operand dst, Operand a, Operand b, MmadShape shape, int line);
Operand scales_of(const Operand& operand);  // those of what lies there in L0A or L0B
void mmad_sparse(Operand dst, Operand a, Operand b, MmadShape shape, int line);
void reset_unit_flags();  // all of L0C is the products' again
void fixpipe(const char* name, Operand dst, Operand src, FixpipeShape shape, int line);

}  // namespace tile_sim
