// The matrix product. Products of 8-bit and 16-bit numbers are exact, sums are fp32 in the order of k.
#include <algorithm>
#include <cstring>
#include <vector>

#include "numbers.h"
#include "product.h"
#include "schedule.h"

namespace tile_sim
{
namespace
{

int64_t blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }

// HF32 keeps 11 bits of the mantissa, rounded to the nearest: ties to even, or towards zero.
float to_hf32(float x)
{
    constexpr uint32_t cut = 12, half = 1u << (cut - 1);
    const uint32_t bits = float_bits(x);
    if ((bits & 0x7f800000) == 0x7f800000) return x;
    const uint32_t up = machine.core->hf32_to_zero ? half - 1 : half - 1 + (bits >> cut & 1);
    return bits_float((bits + up) & ~((1u << cut) - 1));
}

bool is_small(DType type) { return type == DType::f8e4m3 || type == DType::f8e5m2; }
bool is_smallest(DType type) { return type == DType::f4e2m1 || type == DType::f4e1m2; }

// `count` elements of an operand of Mmad that starts at `p`, from element `first` on.
void load(const uint8_t* p, int64_t first, int64_t count, DType type, float* out)
{
    if (type == DType::f32) {
        std::memcpy(out, p + first * 4, size_t(count) * 4);
        if (machine.core->hf32) std::transform(out, out + count, out, to_hf32);
        return;
    }
    if (is_small(type)) {
        for (int64_t i = 0; i < count; ++i) out[i] = small_to_float(p[first + i], type == DType::f8e4m3 ? e4m3 : e5m2);
        return;
    }
    if (is_smallest(type)) {
        const auto& sizes = type == DType::f4e2m1 ? e2m1 : e1m2;
        for (int64_t i = first; i < first + count; ++i) *out++ = nibble_to_float(p[i / 2] >> (i % 2 ? 4 : 0), sizes);
        return;
    }
    uint16_t bits[lanes];
    std::memcpy(bits, p + first * 2, size_t(count) * 2);
    if (type == DType::f16)
        for (int64_t i = 0; i < count; ++i) out[i] = half_to_float(bits[i]);
    else
        for (int64_t i = 0; i < count; ++i) out[i] = bf16_to_float(bits[i]);
}
void load(const uint8_t* p, int64_t first, int64_t count, DType type, int32_t* out)
{
    for (int64_t i = first; i < first + count; ++i)
        *out++ = type == DType::i4 ? int8_t(uint8_t(p[i / 2] << (i % 2 ? 0 : 4))) >> 4 : int8_t(p[i]);
}

// Elements in memory that lie together in one row of A, or in one column of B.
int64_t together(DType type) { return std::min(block_of(type), lanes); }

// The rows of A, or the columns of B, of which some element of k holds nothing; none of them in most products.
template <class Place>
std::vector<char> unwritten_lines(const Operand& at, int64_t lines, int64_t k, int64_t bytes, Place place)
{
    Memory& memory = machine.memory(at.space);
    std::vector<char> found;
    if (!memory.poisoned(at.address, std::min(at.address + bytes, memory.bytes()))) return found;
    found.resize(size_t(lines), 0);
    for (int64_t i = 0; i < lines; ++i)
        for (int64_t j = 0; j < k; ++j) {
            const int64_t address = at.address + bytes_of(at.type, place(i, j));
            if (memory.poisoned(address, address + size_of(at.type))) found[size_t(i)] = 1;
        }
    return found;
}

void check_mmad(const Operand& dst, const Operand& a, const Operand& b, const MmadShape& s, const Instruction& product)
{
    product.needs(dst, Space::L0C, "destination"), product.needs(a, Space::L0A, "left operand"),
        product.needs(b, Space::L0B, "right operand");
    product.align(dst, 1024, "destination"), product.align(a, 512, "left operand"), product.align(b, 512, "right operand");
    const bool whole = a.type == DType::i8 || (a.type == DType::i4 && machine.settings.architecture == 2201);
    const bool small = (is_small(a.type) && is_small(b.type)) || (s.scaled && is_smallest(a.type) && is_smallest(b.type));
    if (s.scaled && !(small && dst.type == DType::f32))
        misuse("unsupported", product.line(), "MmadMx takes floats of 8 bits, or of 4 bits, into float");
    if (s.scaled && s.k % 64)
        misuse("field", product.line(), "MmadParams.k of MmadMx is %lld, and must be a multiple of 64", (long long)s.k);
    if (s.scaled && is_small(a.type)) product.align(a, 1024, "left operand"), product.align(b, 1024, "right operand");
    const bool known = (a.type == b.type || small) && (whole ? dst.type == DType::i32
                                                  : dst.type == DType::f32 &&
                                                        (small || a.type == DType::f16 || a.type == DType::bf16 || a.type == DType::f32));
    if (!known)
        misuse("unsupported", product.line(),
               "Mmad takes half, bfloat16_t or float (on 3510 floats of 8 bits too) into float, and int8_t (on 2201 int4b_t too) into "
               "int32_t");
    if (!s.has_bias) return;
    product.needs(s.bias, Space::BT, "bias"), product.align(s.bias, 64, "bias");
    if (s.bias.type != dst.type || a.type == DType::i4)
        misuse("unsupported", product.line(), "the bias of Mmad is float for float, and int32_t for int8_t");
}

struct ResultPlace {
    int64_t rows16;
    int64_t operator()(int64_t i, int64_t j) const { return ((j / 16 * rows16 + i) * 16 + j % 16) * 4; }
};

// The rows of A one behind the other, and the rows of B with its columns padded to whole blocks of 16.
template <class T>
struct Unpacked {
    std::vector<T> left, right;
};

template <class T, class Place>
void unpack_left(std::vector<T>& values, const Operand& a, const MmadShape& s, Place place)
{
    const uint8_t* const at = machine.memory(a.space).at(a.address);
    const int64_t step = together(a.type);
    values.resize(size_t(s.m * s.k));
    for (int64_t i = 0; i < s.m; ++i)
        for (int64_t p = 0; p < s.k; p += step)
            load(at, place(i, p), std::min(step, s.k - p), a.type, &values[size_t(i * s.k + p)]);
}

template <class T, class Place>
void unpack_right(std::vector<T>& values, const Operand& b, const MmadShape& s, Place place)
{
    const uint8_t* const at = machine.memory(b.space).at(b.address);
    const int64_t step = together(b.type), row = blocks(s.n, lanes) * lanes;
    values.assign(size_t(s.k * row), T(0));
    T square[lanes][lanes];
    for (int64_t p = 0; p < s.k; p += step)
        for (int64_t j = 0; j < s.n; j += lanes) {
            const int64_t deep = std::min(step, s.k - p), wide = std::min(lanes, s.n - j);
            for (int64_t c = 0; c < wide; ++c) load(at, place(j + c, p), deep, b.type, square[c]);
            for (int64_t r = 0; r < deep; ++r)
                for (int64_t c = 0; c < wide; ++c) values[size_t((p + r) * row + j + c)] = square[c][r];
        }
}

// Scales along the depth of a row of A, or of a column of B, two of each 16 lines in a fractal.
struct ScalePlace {
    int64_t pairs;
    int64_t operator()(int64_t i, int64_t p) const { return (i / 16 * pairs + p / 64) * 32 + i % 16 * 2 + p / 32 % 2; }
};

template <class T, class At>
void scale_values(std::vector<T>&, const Operand&, int64_t, int64_t, At)
{
}
template <class At>
void scale_values(std::vector<float>& values, const Operand& operand, int64_t lines, int64_t k, At at)
{
    const Operand scales = scales_of(operand);
    const uint8_t* const bytes = machine.memory(scales).at(scales.address);
    const ScalePlace place{k / 64};
    for (int64_t i = 0; i < lines; ++i)
        for (int64_t p = 0; p < k; ++p) values[size_t(at(i, p))] *= scale_to_float(bytes[place(i, p)]);
}

// The rows of A, or the columns of B, of which some scale holds nothing; together with those that are marked.
std::vector<char> unwritten_scales(std::vector<char> marked, const Operand& operand, int64_t lines, int64_t k)
{
    const Operand scales = scales_of(operand);
    Memory& memory = machine.memory(scales);
    const ScalePlace place{k / 64};
    for (int64_t i = 0; i < lines; ++i)
        for (int64_t p = 0; p < k; p += 32) {
            const int64_t at = scales.address + place(i, p);
            if (!memory.poisoned(at, at + 1)) continue;
            marked.resize(size_t(lines), 0);
            marked[size_t(i)] = 1;
        }
    return marked;
}

void multiply(const Product<int32_t>& product, DType) { add_products(product); }
void multiply(const Product<float>& product, DType type)
{
    return type == DType::f16 || is_small(type) || is_smallest(type) ? add_exact_products(product) : add_products(product);
}

// Sums start at zero, at the bias, or at what L0C holds.
template <class T>
void start_sums(const Operand& dst, const MmadShape& s, const ResultPlace& place)
{
    Memory& memory = machine.memory(Space::L0C);
    if (!s.has_bias && !s.init) return;
    for (int64_t j = 0; j < s.n; j += lanes) {
        T start[lanes] = {};
        const size_t bytes = size_t(std::min(lanes, s.n - j)) * sizeof(T);
        if (s.has_bias) std::memcpy(start, machine.memory(Space::BT).at(s.bias.address + j * int64_t(sizeof(T))), bytes);
        for (int64_t i = 0; i < s.m; ++i) std::memcpy(memory.at(dst.address + place(i, j)), start, bytes);
    }
}

template <class T>
void fill_result(const Operand& dst, const Operand& a, const MmadShape& s, const Unpacked<T>& values)
{
    const ResultPlace place{blocks(s.m, lanes) * lanes};
    start_sums<T>(dst, s, place);
    T* const sums = reinterpret_cast<T*>(machine.memory(Space::L0C).at(dst.address));
    const int64_t across = blocks(s.n, lanes);
    multiply(Product<T>{sums, values.left.data(), values.right.data(), s.m, s.k, across, place.rows16 * lanes, across * lanes}, a.type);
}

bool no_bias(const MmadShape& s, int64_t column)
{
    const int64_t at = s.bias.address + column * 4;
    return s.has_bias && machine.memory(Space::BT).poisoned(at, at + 4);
}

// Elements that hold nothing after this product: those of the padding, those that held nothing before, those that come
// from an operand or a bias that holds nothing.
void poison_result(const Operand& dst, const MmadShape& s, const std::vector<char>& a, const std::vector<char>& b,
                   const std::vector<char>& before)
{
    Memory& memory = machine.memory(Space::L0C);
    const bool bias = s.has_bias && machine.memory(Space::BT).poisoned(s.bias.address, s.bias.address + s.n * 4);
    if (a.empty() && b.empty() && before.empty() && !bias && s.m % lanes == 0 && s.n % lanes == 0) return;
    const auto marked = [](const std::vector<char>& lines, int64_t i) { return !lines.empty() && lines[size_t(i)]; };
    const int64_t rows16 = blocks(s.m, 16) * 16, cols16 = blocks(s.n, 16) * 16;
    const ResultPlace place{rows16};
    for (int64_t j = 0; j < cols16; ++j)
        for (int64_t i = 0; i < rows16; ++i) {
            const int64_t at = place(i, j);
            const bool inside = i < s.m && j < s.n;
            if (inside && !marked(a, i) && !marked(b, j) && !no_bias(s, j) && !marked(before, at / 4)) continue;
            memory.poison(dst.address + at, dst.address + at + 4, true);
        }
}

// The elements that held nothing; none in most products.
std::vector<char> poison_before(const Operand& dst, int64_t bytes, bool needed)
{
    Memory& memory = machine.memory(Space::L0C);
    std::vector<char> before;
    if (!needed || !memory.poisoned(dst.address, dst.address + bytes)) return before;
    for (int64_t i = 0; i < bytes; i += 4) before.push_back(memory.poisoned(dst.address + i, dst.address + i + 4));
    return before;
}

// Up to the end of the last row of fractals (zZ), without those that only align k.
int64_t left_bytes(const MmadShape& s, int64_t across, int64_t used)
{
    return (blocks(s.m, 16) * across - (across - used)) * 512;
}

// Unpacks the operands and adds their products. `across`: blocks of k in a row of fractals of A.
template <class T>
void compute(const Operand& dst, const Operand& a, const Operand& b, const MmadShape& s, int64_t across,
             const std::vector<char>& before)
{
    const int64_t c0 = block_of(a.type), n16 = blocks(s.n, 16);
    const bool vector_mode = s.m == 1;                              // A is then read as k elements in a row
    const bool by_columns = machine.settings.architecture == 3510;  // L0A holds NZ there, and zZ here
    const int64_t m16 = blocks(s.m, 16);
    const auto left = [&](int64_t i, int64_t p) {
        const int64_t block = by_columns ? p / c0 * m16 + i / 16 : i / 16 * across + p / c0;
        return vector_mode ? p : (block * 16 + i % 16) * c0 + p % c0;
    };
    const auto right = [&](int64_t j, int64_t p) { return (p / c0 * n16 + j / 16) * 16 * c0 + j % 16 * c0 + p % c0; };
    static Unpacked<T> values;  // one product is computed at a time
    unpack_left(values.left, a, s, left), unpack_right(values.right, b, s, right);
    if (s.scaled) {
        scale_values(values.left, a, s.m, s.k, [&](int64_t i, int64_t p) { return i * s.k + p; });
        scale_values(values.right, b, s.n, s.k, [&](int64_t j, int64_t p) { return p * blocks(s.n, lanes) * lanes + j; });
    }
    fill_result(dst, a, s, values);
    std::vector<char> rows = unwritten_lines(a, s.m, s.k, left_bytes(s, across, blocks(s.k, c0)), left);
    std::vector<char> columns = unwritten_lines(b, s.n, s.k, blocks(s.k, c0) * n16 * 512, right);
    if (s.scaled) rows = unwritten_scales(rows, a, s.m, s.k), columns = unwritten_scales(columns, b, s.n, s.k);
    poison_result(dst, s, rows, columns, before);
}

}  // namespace

void mmad(Operand dst, Operand a, Operand b, MmadShape s, int line)
{
    if (queued(line, [=] { mmad(dst, a, b, s, line); }, dst, a, b)) return;
    Instruction product(s.scaled ? "MmadMx" : "Mmad", Pipe::M, line);
    check_mmad(dst, a, b, s, product);
    if (!s.m || !s.n || !s.k) return;
    if (s.from_bias && !s.init && !s.has_bias)  // without a tensor for it: the start of the table
        s.has_bias = true, s.bias = {Space::BT, dst.type, 0, machine.memory(Space::BT).bytes()};
    const int64_t size = size_of(a.type), c0 = block_of(a.type);
    const int64_t across =
        size == 4 && s.k_align && machine.settings.architecture == 2201 ? blocks(s.k, 16) * 2 : blocks(s.k, c0);
    const int64_t n16 = blocks(s.n, 16), result = blocks(s.m, 16) * 16 * n16 * 16 * 4;
    const bool accumulates = !s.init && !s.has_bias;
    product.unit_flag(s.unit_flag);
    product.guarded((s.m / 16) * (s.n / 16) >= 10);
    product.reads(a, 0, s.m == 1 ? bytes_of(a.type, s.k) : left_bytes(s, across, blocks(s.k, c0)), Instruction::Poison::carry);
    product.reads(b, 0, blocks(s.k, c0) * n16 * 512, Instruction::Poison::carry);
    if (s.scaled) {
        product.reads(scales_of(a), 0, blocks(s.m, 16) * (s.k / 64) * 32, Instruction::Poison::carry);
        product.reads(scales_of(b), 0, n16 * (s.k / 64) * 32, Instruction::Poison::carry);
    }
    if (accumulates) product.reads(dst, 0, result, Instruction::Poison::carry);
    if (s.has_bias) product.reads(s.bias, 0, s.n * 4, Instruction::Poison::carry);
    product.writes(dst, 0, result);
    const std::vector<char> before = poison_before(dst, result, accumulates && dst.end - dst.address >= result);
    product.check();
    product.sized(s.m, s.n, s.k, size);
    product.counts("macs", s.m * s.n * s.k);
    if (dst.type == DType::i32)
        compute<int32_t>(dst, a, b, s, across, before);
    else
        compute<float>(dst, a, b, s, across, before);
}

void set_hf32(bool on) { machine.core->hf32 = on; }
void set_hf32_rounding(bool to_zero) { machine.core->hf32_to_zero = to_zero; }

}  // namespace tile_sim
