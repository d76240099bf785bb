// What the Ascend C headers ask of the runtime. The kernel is compiled against this thin interface only;
// the runtime behind it is compiled once and kept.
#pragma once
#include <cstdint>

namespace tile_sim
{

// BT: the bias table, FB: the Fixpipe buffer (scales by column), IX: indices of a sparse right operand, beside L0B; MXA, MXB: scales
// of operands, beside L0A and L0B
enum class Space : uint8_t { GM, UB, L1, L0A, L0B, L0C, BT, FB, IX, MXA, MXB, count };
enum class Pipe : uint8_t { S, V, M, MTE1, MTE2, MTE3, FIX, count, ALL };
enum class DType : uint8_t { f16, bf16, f32, i8, u8, i16, u16, i32, u32, i64, u64, i4, f8e4m3, f8e5m2, e8m0, f4e2m1, f4e1m2 };
enum class KernelType : uint8_t { AIC_ONLY, AIV_ONLY, MIX_AIC_1_1, MIX_AIC_1_2, MIX_AIC_1_0, MIX_AIV_1_0 };

// Whether two elements share a byte: see bytes_of.
constexpr bool is_half_byte(DType type) { return type == DType::i4 || type == DType::f4e2m1 || type == DType::f4e1m2; }

constexpr int64_t size_of(DType type)
{
    if (is_half_byte(type)) return 1;
    switch (type) {
        case DType::e8m0:
        case DType::i8:
        case DType::u8:
        case DType::f8e4m3:
        case DType::f8e5m2: return 1;
        case DType::f16:
        case DType::bf16:
        case DType::i16:
        case DType::u16: return 2;
        case DType::f32:
        case DType::i32:
        case DType::u32: return 4;
        default: return 8;
    }
}

constexpr int64_t bytes_of(DType type, int64_t elements) { return is_half_byte(type) ? elements / 2 : elements * size_of(type); }
constexpr int64_t block_of(DType type) { return is_half_byte(type) ? 64 : 32 / size_of(type); }  // elements in 32 bytes

struct PipePair {
    Pipe src, dst;
};

// A tensor as an instruction sees it: where it starts (bytes from the start of its memory) and where it ends. `begin` is where
// the tensor starts that it is a part of (-1: not known). `core`: whose memory it is (-1: that of the core that runs).
struct Operand {
    Space space = Space::UB;
    DType type = DType::f32;
    int64_t address = 0;
    int64_t end = 0;
    int64_t begin = -1;
    int core = -1;
    bool read_past_l2 = false, written_past_l2 = false;  // of GM: SetL2CacheHint
};

// Which elements of a vector instruction take part. `count` >= 0: the first `count`, contiguous. Otherwise, with strides in
// 32-byte blocks, the first `total` lanes of as many rounds as that takes (counter mode), or `repeat` times the lanes of
// `mask` (bits), or `repeat` times the first `each`, however many blocks that is (Copy in counter mode).
struct Lanes {
    int64_t count = -1;
    int64_t total = -1;
    int64_t each = -1;
    int64_t repeat = 0;
    uint64_t mask[2] = {0, 0};
};

struct Stride {
    int64_t block = 1;
    int64_t repeat = 8;
};

enum class UnaryOp : uint8_t { exp, ln, abs, sqrt, rsqrt, relu, reciprocal, bit_not, neg, copy };
enum class BinaryOp : uint8_t {
    add, sub, mul, div, max, min, bit_and, bit_or, mul_add_dst, fused_mul_add, fused_mul_add_relu, add_relu, sub_relu
};
enum class ScalarOp : uint8_t { adds, muls, maxs, mins, leaky_relu, axpy };
enum class ReduceOp : uint8_t { sum, max, min };
enum class Order : uint8_t { value_index, index_value, only_value, only_index };
enum class Rounding : uint8_t { none, rint, floor, ceil, round, trunc, odd };
enum class Comparison : uint8_t { lt, gt, eq, le, ge, ne };

struct VectorSide {
    Operand at;
    Stride stride;
};

// mask.cpp: the mask register of a vector core, and its mode.
struct MaskArgument {
    int64_t lanes = -1;  // >= 0: the first lanes; otherwise the bits
    uint64_t low = 0, high = 0;
};
void keep_infinities(bool kept);
void set_mask_mode(bool counter);
void set_mask_bits(uint64_t high, uint64_t low);
void set_mask_length(int64_t lanes, int64_t width, int line);
Lanes masked(bool set, MaskArgument mask, int64_t repeat, int64_t width, int line);  // `set`: the instruction sets the register
Lanes copied(bool set, MaskArgument mask, int64_t repeat, int64_t width, int line);  // the same, for Copy
Lanes counted(bool set, int64_t count, int64_t width, int line);

// vector.cpp, fused.cpp, cast.cpp
void vector_unary(const char* name, UnaryOp op, VectorSide dst, VectorSide src, Lanes lanes, int line);
void vector_binary(const char* name, BinaryOp op, VectorSide dst, VectorSide a, VectorSide b, Lanes lanes, int line);
void vector_scalar(const char* name, ScalarOp op, VectorSide dst, VectorSide src, double scalar, Lanes lanes, int line);
void vector_shift(const char* name, bool left, VectorSide dst, VectorSide src, int64_t bits, bool round, Lanes lanes, int line);
void vector_duplicate(VectorSide dst, uint64_t bits, Lanes lanes, int line);
void vector_index(VectorSide dst, double first, Lanes lanes, int line);
void vector_brcb(Operand dst, Operand src, int64_t repeat, Stride dst_stride, int line);
void vector_cast(VectorSide dst, VectorSide src, Rounding rounding, Lanes lanes, int line);
void vector_binary_cast(const char* name, BinaryOp op, VectorSide dst, VectorSide a, VectorSide b, Lanes lanes, int line);
struct Dequantisation {
    bool vector = false;  // scale and offset for each of the 16 lanes of a block, from UB at `address`
    bool high_half = false, accumulate_relu = false;
};
enum class Deq : uint8_t { none, half, settings, table };  // what SetDeqScale has put into the register
void set_deq_scale(Deq kind, uint64_t bits);
void vector_dequantise(const char* name, VectorSide dst, VectorSide src, VectorSide other, Dequantisation how, Lanes lanes,
                       int line);

// select.cpp, gather.cpp, sort.cpp, transpose.cpp, reduce.cpp
void vector_compare(VectorSide dst, VectorSide a, VectorSide b, Comparison how, Lanes lanes, int line);
void vector_compare_scalar(VectorSide dst, VectorSide a, double scalar, Comparison how, Lanes lanes, int line);
void vector_compare_register(VectorSide a, VectorSide b, Comparison how, Lanes lanes, int line);
void get_compare_mask(Operand dst, int line);
void set_compare_mask(Operand src, int line);
enum class SelectMode : uint8_t { from_register, tensor_scalar, tensor_tensor };
void vector_select(VectorSide dst, Operand mask, VectorSide a, VectorSide b, SelectMode mode, Lanes lanes, int line);
// As vector_select_scalar, with the element that lies at the start of the compare register.
void vector_select_register_scalar(VectorSide dst, Operand mask, VectorSide a, Lanes lanes, int line);
void vector_select_scalar(VectorSide dst, Operand mask, VectorSide a, double scalar, Lanes lanes, int line);
void vector_gather(VectorSide dst, Operand src, Operand offsets, int64_t base, Lanes lanes, int line);
void vector_gather_blocks(Operand dst, Operand src, Operand offsets, int64_t repeat, Stride stride, int line);
struct GatherMaskShape {
    int64_t block_stride, repeat, src_stride, pattern_stride, fixed, lanes;  // lanes < 0: whole rounds
};
uint64_t vector_gather_mask(Operand dst, Operand src, const Operand* pattern, GatherMaskShape shape, int line);
void vector_sort32(Operand dst, Operand scores, Operand indices, int64_t repeat, int line);
struct MergeShape {
    int64_t lengths[4] = {0, 0, 0, 0};
    int64_t lists = 4, repeat = 1;
    bool stop_when_exhausted = false;
};
void vector_merge(Operand dst, const Operand* lists, MergeShape shape, int line);
void merge_result(uint16_t* counts);
void vector_transpose(Operand dst, Operand src, int line);
struct To5hdShape {
    int64_t repeat, dst_stride, src_stride;
    bool dst_high, src_high;
};
void vector_to_5hd(const Operand* dst, const Operand* src, To5hdShape shape, int line);
void vector_transpose_nd(Operand dst, Operand src, Operand scratch, const int64_t* nchw, bool to_nhwc, int line);
void reduce_whole(const char* name, ReduceOp op, Operand dst, VectorSide src, int64_t dst_stride, Lanes lanes, Order order,
                  int line);
void reduce_block(const char* name, ReduceOp op, Operand dst, VectorSide src, int64_t dst_stride, Lanes lanes, int line);
void reduce_pair(const char* name, Operand dst, VectorSide src, int64_t dst_stride, Lanes lanes, int line);
void reduce_all(const char* name, ReduceOp op, Operand dst, VectorSide src, Operand scratch, bool index, Lanes lanes, int line);
uint64_t reduced_extreme(DType type, int line);  // value, and the index in the upper 32 bits
uint64_t reduced_sum(DType type, int line);

// copy.cpp. Strides of `Rows` are from the start of one row to the start of the next, in bytes.
struct Rows {
    int64_t count = 1, bytes = 0, src_stride = 0, dst_stride = 0;
};
struct Padding {
    bool given = false;
    int64_t left = 0, right = 0;
    uint64_t value = 0;
};
struct Nd2Nz {
    int64_t matrices, rows, cols, src_matrix_stride, src_row_stride, dst_c0_stride, dst_row_stride, dst_matrix_stride;
};
void copy_rows(const char* name, Operand dst, Operand src, Rows rows, int line);
void copy_pad_in(Operand dst, Operand src, Rows rows, Padding padding, int line);
void copy_dn2nz(Operand dst, Operand src, Nd2Nz shape, int line);
void copy_nd2nz(Operand dst, Operand src, Nd2Nz shape, int line);

// sync.cpp
void set_flag(Pipe src, Pipe dst, int64_t id, int line);
void wait_flag(Pipe src, Pipe dst, int64_t id, int line);
void pipe_barrier(Pipe pipe, int line);

// places.cpp: a line of the kernel's own file as it is, one of a file that it includes with the number of that file.
int placed(int line, const char* file);

// machine.cpp
bool is_aic();
bool is_aiv();
int64_t block_index();
int64_t block_count();
int64_t sub_block_index();
int64_t sub_block_count();
void declare_type(KernelType type, int line);
enum class AtomicOp : uint8_t { none, add, max, min };
void set_atomic(AtomicOp op, DType type, int line);
void set_atomic_type(DType type);
bool is_atomic_sum(DType type);  // that stores add, in this type
void set_pad_value(uint64_t bits);
int64_t capacity(Space space);
int64_t allocate(Space space, int64_t bytes, int line);  // the address of the piece
void reset_allocation(bool managed);  // whether a TPipe hands out memory and event ids from now on
void restart_allocation(Space space, int64_t at);
int64_t gm_address(const void* pointer, int line);
int64_t gm_end(int64_t address);
uint8_t* gm_pointer(int64_t address);
uint64_t scalar_read(Operand at, int64_t index, int line);
uint64_t peek(Operand at, int64_t index, int line);  // for printing: no instruction, and no order
void watched(int64_t id, const Operand* at, int64_t bytes, const int64_t* values, int64_t count);  // watch.cpp

void scalar_write(Operand at, int64_t index, uint64_t bits, int line);
uint64_t read_past_cache(Operand at, int line);
void write_past_cache(Operand at, uint64_t bits, int line);
void clean_cache(Operand at, bool all, int line);
void data_sync_barrier(int line);
[[noreturn]] void misuse(const char* kind, int line, const char* format, ...);

// An integer that must fit the field of an instruction: anything else is an error, never a truncation.
inline int64_t checked(int64_t value, int64_t low, int64_t high, const char* name, int line)
{
    if (value < low || value > high)
        misuse("field", line, "%s is %lld, and must lie in [%lld, %lld]", name, (long long)value, (long long)low,
               (long long)high);
    return value;
}

}  // namespace tile_sim
