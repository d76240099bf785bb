// The matrix product. Products of 16-bit numbers are exact, sums are fp32 in the order of k.
#include <algorithm>
#include <cstring>
#include <vector>

#include "numbers.h"
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

// Element `i` of an operand of Mmad that starts at `p`.
void load(const uint8_t* p, int64_t i, DType type, float& out)
{
    uint16_t bits;
    if (type == DType::f32) {
        std::memcpy(&out, p + i * 4, 4);
        if (machine.core->hf32) out = to_hf32(out);
        return;
    }
    std::memcpy(&bits, p + i * 2, 2);
    out = type == DType::f16 ? half_to_float(bits) : bf16_to_float(bits);
}
void load(const uint8_t* p, int64_t i, DType type, int32_t& out)
{
    out = type == DType::i4 ? int8_t(uint8_t(p[i / 2] << (i % 2 ? 0 : 4))) >> 4 : int8_t(p[i]);
}

// One operand of Mmad, unpacked: `lines` rows (A) or columns (B) of k elements; poisoned lines are marked.
template <class T>
struct Unpacked {
    std::vector<T> values;
    std::vector<char> poisoned;
};

template <class T, class Place>
Unpacked<T> unpack(const Operand& at, int64_t lines, int64_t k, Place place)
{
    Memory& memory = machine.memory(at.space);
    Unpacked<T> result{std::vector<T>(size_t(lines * k)), std::vector<char>(size_t(lines), 0)};
    for (int64_t i = 0; i < lines; ++i)
        for (int64_t j = 0; j < k; ++j) {
            const int64_t element = place(i, j), address = at.address + bytes_of(at.type, element);
            load(memory.at(at.address), element, at.type, result.values[size_t(i * k + j)]);
            if (memory.poisoned(address, address + size_of(at.type))) result.poisoned[size_t(i)] = 1;
        }
    return result;
}

void check_mmad(const Operand& dst, const Operand& a, const Operand& b, const MmadShape& s, const Instruction& product)
{
    product.needs(dst, Space::L0C, "destination"), product.needs(a, Space::L0A, "left operand"),
        product.needs(b, Space::L0B, "right operand");
    product.align(dst, 1024, "destination"), product.align(a, 512, "left operand"), product.align(b, 512, "right operand");
    const bool whole = a.type == DType::i8 || (a.type == DType::i4 && machine.settings.architecture == 2201);
    const bool known = a.type == b.type && (whole ? dst.type == DType::i32
                                                  : dst.type == DType::f32 &&
                                                        (a.type == DType::f16 || a.type == DType::bf16 || a.type == DType::f32));
    if (!known)
        misuse("unsupported", product.line(),
               "Mmad takes half, bfloat16_t or float into float, and int8_t (on 2201 int4b_t too) into int32_t");
    if (!s.has_bias) return;
    product.needs(s.bias, Space::BT, "bias"), product.align(s.bias, 64, "bias");
    if (s.bias.type != dst.type || a.type == DType::i4)
        misuse("unsupported", product.line(), "the bias of Mmad is float for float, and int32_t for int8_t");
}

// rows[i] += a[i] * b[0..n): the order of k is the order of the sums.
template <class T>
void multiply(T* c, const T* a, const T* b, int64_t n, int64_t k)
{
    for (int64_t p = 0; p < k; ++p) {
        const T left = a[p];
        const T* right = b + p * n;
        for (int64_t j = 0; j < n; ++j) c[j] += left * right[j];
    }
}

struct ResultPlace {
    int64_t rows16;
    int64_t operator()(int64_t i, int64_t j) const { return ((j / 16 * rows16 + i) * 16 + j % 16) * 4; }
};

// Where a row of sums starts: at zero, at the bias, or at what L0C holds.
template <class T, class Place>
void start_row(T* row, const Operand& dst, const MmadShape& s, int64_t i, const Place& place)
{
    if (s.has_bias) return void(std::memcpy(row, machine.memory(Space::BT).at(s.bias.address), size_t(s.n) * sizeof(T)));
    for (int64_t j = 0; j < s.n; j += 16)
        if (s.init)
            std::fill_n(row + j, std::min<int64_t>(16, s.n - j), T(0));
        else
            std::memcpy(row + j, machine.memory(Space::L0C).at(dst.address + place(i, j)),
                        size_t(std::min<int64_t>(16, s.n - j)) * 4);
}

template <class T>
void fill_result(const Operand& dst, const MmadShape& s, const Unpacked<T>& a, const Unpacked<T>& b)
{
    Memory& memory = machine.memory(Space::L0C);
    const ResultPlace place{blocks(s.m, 16) * 16};
    std::vector<T> right(size_t(s.k * s.n)), row(size_t(s.n));
    for (int64_t j = 0; j < s.n; ++j)
        for (int64_t p = 0; p < s.k; ++p) right[size_t(p * s.n + j)] = b.values[size_t(j * s.k + p)];
    for (int64_t i = 0; i < s.m; ++i) {
        start_row(row.data(), dst, s, i, place);
        multiply(row.data(), a.values.data() + i * s.k, right.data(), s.n, s.k);
        for (int64_t j = 0; j < s.n; j += 16)
            std::memcpy(memory.at(dst.address + place(i, j)), row.data() + j, size_t(std::min<int64_t>(16, s.n - j)) * 4);
    }
}

bool no_bias(const MmadShape& s, int64_t column)
{
    const int64_t at = s.bias.address + column * 4;
    return s.has_bias && machine.memory(Space::BT).poisoned(at, at + 4);
}

// Elements that hold nothing after this product: those of the padding, those that held nothing before, those that come
// from an operand or a bias that holds nothing.
template <class T>
void poison_result(const Operand& dst, const MmadShape& s, const Unpacked<T>& a, const Unpacked<T>& b,
                   const std::vector<char>& before)
{
    Memory& memory = machine.memory(Space::L0C);
    const int64_t rows16 = blocks(s.m, 16) * 16, cols16 = blocks(s.n, 16) * 16;
    const ResultPlace place{rows16};
    for (int64_t j = 0; j < cols16; ++j)
        for (int64_t i = 0; i < rows16; ++i) {
            const int64_t at = place(i, j);
            const bool inside = i < s.m && j < s.n;
            if (inside && !a.poisoned[size_t(i)] && !b.poisoned[size_t(j)] && !no_bias(s, j) &&
                (before.empty() || !before[size_t(at / 4)]))
                continue;
            memory.poison(dst.address + at, dst.address + at + 4, true);
        }
}

std::vector<char> poison_before(const Operand& dst, int64_t bytes, bool needed)
{
    std::vector<char> before(size_t(needed ? bytes / 4 : 0));
    for (size_t i = 0; i < before.size(); ++i)
        before[i] = machine.memory(Space::L0C).poisoned(dst.address + int64_t(i) * 4, dst.address + int64_t(i) * 4 + 4);
    return before;
}

}  // namespace

namespace
{

// Unpacks the operands and adds their products. `across`: blocks of k in a row of fractals of A.
template <class T>
void compute(const Operand& dst, const Operand& a, const Operand& b, const MmadShape& s, int64_t across,
             const std::vector<char>& before)
{
    const int64_t c0 = block_of(a.type), n16 = blocks(s.n, 16);
    const bool vector_mode = s.m == 1;                              // A is then read as k elements in a row
    const bool by_columns = machine.settings.architecture == 3510;  // L0A holds NZ there, and zZ here
    const int64_t m16 = blocks(s.m, 16);
    const auto left = unpack<T>(a, s.m, s.k, [&](int64_t i, int64_t p) {
        const int64_t block = by_columns ? p / c0 * m16 + i / 16 : i / 16 * across + p / c0;
        return vector_mode ? p : (block * 16 + i % 16) * c0 + p % c0;
    });
    const auto right =
        unpack<T>(b, s.n, s.k, [&](int64_t j, int64_t p) { return (p / c0 * n16 + j / 16) * 16 * c0 + j % 16 * c0 + p % c0; });
    fill_result(dst, s, left, right);
    poison_result(dst, s, left, right, before);
}

}  // namespace

namespace
{

// Up to the end of the last row of fractals (zZ), without those that only align k.
int64_t left_bytes(const MmadShape& s, int64_t across, int64_t used)
{
    return (blocks(s.m, 16) * across - (across - used)) * 512;
}

}  // namespace

void mmad(Operand dst, Operand a, Operand b, MmadShape s, int line)
{
    if (queued(line, [=] { mmad(dst, a, b, s, line); }, dst, a, b)) return;
    Instruction product("Mmad", Pipe::M, line);
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
