// The matrix product and the way out of L0C. Products of 16-bit numbers are exact, sums are fp32 in the order of k.
#include <algorithm>
#include <cstring>
#include <vector>

#include "schedule.h"
#include "numbers.h"

namespace tile_sim
{
namespace
{

int64_t blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }

float load_float(const uint8_t* p, DType type)
{
    if (type == DType::f32) {
        float value;
        std::memcpy(&value, p, 4);
        return value;
    }
    uint16_t bits;
    std::memcpy(&bits, p, 2);
    return type == DType::f16 ? half_to_float(bits) : bf16_to_float(bits);
}

// One operand of Mmad, unpacked: `lines` rows (A) or columns (B) of k elements; poisoned lines are marked.
struct Unpacked {
    std::vector<float> values;
    std::vector<char> poisoned;
};

template <class Place>
Unpacked unpack(const Operand& at, int64_t lines, int64_t k, Place place)
{
    Memory& memory = machine.memory(at.space);
    const int64_t size = size_of(at.type);
    Unpacked result{std::vector<float>(size_t(lines * k)), std::vector<char>(size_t(lines), 0)};
    for (int64_t i = 0; i < lines; ++i)
        for (int64_t j = 0; j < k; ++j) {
            const int64_t address = at.address + place(i, j) * size;
            result.values[size_t(i * k + j)] = load_float(memory.at(address), at.type);
            if (memory.poisoned(address, address + size)) result.poisoned[size_t(i)] = 1;
        }
    return result;
}

void check_mmad(const Operand& dst, const Operand& a, const Operand& b, const MmadShape& s, const Instruction& product)
{
    product.needs(dst, Space::L0C, "destination"), product.needs(a, Space::L0A, "left operand"),
        product.needs(b, Space::L0B, "right operand");
    product.align(dst, 1024, "destination"), product.align(a, 512, "left operand"), product.align(b, 512, "right operand");
    const bool known =
        dst.type == DType::f32 && a.type == b.type && (a.type == DType::f16 || a.type == DType::bf16 || a.type == DType::f32);
    if (!known) misuse("unsupported", product.line(), "the simulator knows Mmad of half, bfloat16_t or float into float");
    if (s.from_bias) misuse("unsupported", product.line(), "the simulator knows no bias table");
}

// rows[i] += a[i] * b[0..n): the order of k is the order of the sums.
void multiply(float* c, const float* a, const float* b, int64_t n, int64_t k)
{
    for (int64_t p = 0; p < k; ++p) {
        const float left = a[p];
        const float* right = b + p * n;
        for (int64_t j = 0; j < n; ++j) c[j] += left * right[j];
    }
}

struct ResultPlace {
    int64_t rows16;
    int64_t operator()(int64_t i, int64_t j) const { return ((j / 16 * rows16 + i) * 16 + j % 16) * 4; }
};

void fill_result(const Operand& dst, const MmadShape& s, const Unpacked& a, const Unpacked& b)
{
    Memory& memory = machine.memory(Space::L0C);
    const ResultPlace place{blocks(s.m, 16) * 16};
    std::vector<float> right(size_t(s.k * s.n)), row(size_t(s.n));
    for (int64_t j = 0; j < s.n; ++j)
        for (int64_t p = 0; p < s.k; ++p) right[size_t(p * s.n + j)] = b.values[size_t(j * s.k + p)];
    for (int64_t i = 0; i < s.m; ++i) {
        for (int64_t j = 0; j < s.n; j += 16)
            if (s.init)
                std::fill_n(row.begin() + j, std::min<int64_t>(16, s.n - j), 0.0f);
            else
                std::memcpy(row.data() + j, memory.at(dst.address + place(i, j)), size_t(std::min<int64_t>(16, s.n - j)) * 4);
        multiply(row.data(), a.values.data() + i * s.k, right.data(), s.n, s.k);
        for (int64_t j = 0; j < s.n; j += 16)
            std::memcpy(memory.at(dst.address + place(i, j)), row.data() + j, size_t(std::min<int64_t>(16, s.n - j)) * 4);
    }
}

// Elements that hold nothing after this product: those of the padding, those that held nothing before, those that come
// from an operand that holds nothing.
void poison_result(const Operand& dst, const MmadShape& s, const Unpacked& a, const Unpacked& b, const std::vector<char>& before)
{
    Memory& memory = machine.memory(Space::L0C);
    const int64_t rows16 = blocks(s.m, 16) * 16, cols16 = blocks(s.n, 16) * 16;
    const ResultPlace place{rows16};
    for (int64_t j = 0; j < cols16; ++j)
        for (int64_t i = 0; i < rows16; ++i) {
            const int64_t at = place(i, j);
            const bool inside = i < s.m && j < s.n;
            if (inside && !a.poisoned[size_t(i)] && !b.poisoned[size_t(j)] && (s.init || !before[size_t(at / 4)])) continue;
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

void mmad(Operand dst, Operand a, Operand b, MmadShape s, int line)
{
    if (queued(line, [=] { mmad(dst, a, b, s, line); }, dst, a, b)) return;
    Instruction product("Mmad", Pipe::M, line);
    check_mmad(dst, a, b, s, product);
    if (!s.m || !s.n || !s.k) return;
    const int64_t size = size_of(a.type), c0 = 32 / size;
    const int64_t across = size == 4 && s.k_align ? blocks(s.k, 16) * 2 : blocks(s.k, c0);
    const int64_t n16 = blocks(s.n, 16), result = blocks(s.m, 16) * 16 * n16 * 16 * 4;
    product.unit_flag(s.unit_flag);
    product.guarded((s.m / 16) * (s.n / 16) >= 10);
    product.reads(a, 0, s.m == 1 ? s.k * size : blocks(s.m, 16) * across * 512 - (across - blocks(s.k, c0)) * 512,
                  Instruction::Poison::carry);
    product.reads(b, 0, blocks(s.k, c0) * n16 * 512, Instruction::Poison::carry);
    if (!s.init) product.reads(dst, 0, result, Instruction::Poison::carry);
    product.writes(dst, 0, result);
    const std::vector<char> before = poison_before(dst, result, !s.init && dst.end - dst.address >= result);
    product.check();
    product.sized(s.m, s.n, s.k, size);
    product.counts("macs", s.m * s.n * s.k);
    const bool vector_mode = s.m == 1;  // A is then read as k elements in a row
    const Unpacked left = unpack(a, s.m, s.k, [&](int64_t i, int64_t p) {
        return vector_mode ? p : (i / 16 * across + p / c0) * 16 * c0 + i % 16 * c0 + p % c0;
    });
    const Unpacked right =
        unpack(b, s.n, s.k, [&](int64_t j, int64_t p) { return (p / c0 * n16 + j / 16) * 16 * c0 + j % 16 * c0 + p % c0; });
    fill_result(dst, s, left, right);
    poison_result(dst, s, left, right, before);
}

namespace
{

enum Quantisation { no_quant, f32_to_f16, f32_to_bf16 };

void check_fixpipe(const Operand& dst, const Operand& src, const FixpipeShape& s, const Instruction& out)
{
    const int line = out.line();
    out.needs(src, Space::L0C, "source");
    out.align(src, 64, "source");
    if (src.type != DType::f32) misuse("unsupported", line, "the simulator knows Fixpipe of float only");
    if (s.channel_split) misuse("unsupported", line, "the simulator knows no channel split");
    if (dst.space != Space::GM) out.needs(dst, Space::L1, "destination"), out.align(dst, 32, "destination");
    const int64_t wanted = dst.type == DType::f16 ? f32_to_f16 : dst.type == DType::bf16 ? f32_to_bf16 : no_quant;
    if (dst.type != DType::f16 && dst.type != DType::bf16 && dst.type != DType::f32)
        misuse("unsupported", line, "the simulator knows Fixpipe to half, bfloat16_t and float");
    if (s.quantisation != wanted)
        misuse("field", line,
               "FixpipeParamsV220.quantPre does not fit the destination: NoQuant for float, F322F16 for half, F322BF16 for "
               "bfloat16_t");
    if (dst.space == Space::L1 && wanted == no_quant)
        misuse("field", line, "Fixpipe to L1 takes no unconverted float on this architecture");
    if (!s.row_major && s.n % 16)
        misuse("field", line, "FixpipeParamsV220.nSize is %lld, and must be a multiple of 16 for NZ", (long long)s.n);
    if (s.row_major && s.m > 1 && s.dst_stride < s.n)
        misuse("overlap", line, "the rows of Fixpipe overlap: %lld columns, and %lld elements from row to row", (long long)s.n,
               (long long)s.dst_stride);
    if (!s.dst_stride) misuse("field", line, "FixpipeParamsV220.dstStride is 0");
}

void convert_run(uint8_t* dst, const uint8_t* src, int64_t count, DType type, bool relu)
{
    for (int64_t i = 0; i < count; ++i) {
        float value;
        std::memcpy(&value, src + i * 4, 4);
        if (relu) value = value < 0 ? 0.0f : value;
        const uint16_t narrow = type == DType::f16 ? float_to_half(value) : float_to_bf16(value);
        if (type == DType::f32)
            std::memcpy(dst + i * 4, &value, 4);
        else
            std::memcpy(dst + i * 2, &narrow, 2);
    }
}

}  // namespace

void fixpipe(Operand dst, Operand src, FixpipeShape s, int line)
{
    if (queued(line, [=] { fixpipe(dst, src, s, line); }, dst, src)) return;
    Instruction out("Fixpipe", Pipe::FIX, line);
    check_fixpipe(dst, src, s, out);
    const bool to_gm = dst.space == Space::GM, add = to_gm && machine.core->atomic;
    const int64_t size = size_of(dst.type), matrices = s.row_major ? s.matrices : 1;
    out.unit_flag(s.unit_flag), out.atomic(add);
    const auto each = [&](auto&& visit) {  // runs of up to 16 elements: (destination, source, elements)
        for (int64_t matrix = 0; matrix < matrices; ++matrix)
            for (int64_t j = 0; j < s.n; j += 16)
                for (int64_t i = 0; i < s.m; ++i) {
                    const int64_t from = matrix * s.src_matrix_stride * 1024 + (j / 16 * s.src_stride + i) * 64;
                    const int64_t to = s.row_major ? (matrix * s.dst_matrix_stride + i * s.dst_stride + j) * size
                                                   : j / 16 * s.dst_stride * 32 + i * 16 * size;
                    visit(to, from, std::min<int64_t>(16, s.n - j));
                }
    };
    each([&](int64_t to, int64_t from, int64_t count) {
        out.reads(src, from, count * 4, to_gm ? Instruction::Poison::error : Instruction::Poison::carry);
        if (add) out.reads(dst, to, count * size);
        out.writes(dst, to, count * size);
    });
    out.check();
    out.sized(s.m * matrices, s.n * size, s.dst_stride * size, size);
    out.counts(to_gm ? "L0C->GM" : "L0C->L1", s.m * s.n * matrices * size);
    Memory &from_memory = machine.memory(src.space), &to_memory = machine.memory(dst.space);
    each([&](int64_t to, int64_t from, int64_t count) {
        uint8_t converted[64];
        convert_run(converted, out.data(src, from), count, dst.type, s.relu);
        if (add) return atomic_add(out.data(dst, to), converted, count * size, dst.type, line);
        std::memcpy(out.data(dst, to), converted, size_t(count * size));
        for (int64_t e = 0; !to_gm && e < count; ++e)
            if (from_memory.poisoned(src.address + from + e * 4, src.address + from + e * 4 + 4))
                to_memory.poison(dst.address + to + e * size, dst.address + to + (e + 1) * size, true);
    });
}

}  // namespace tile_sim
