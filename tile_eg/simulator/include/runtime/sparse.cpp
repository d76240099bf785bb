// 4:2 structured sparsity: of every four elements of k the right operand keeps two, and an index of 2 bits says which each of
// them was: the first among elements 0 to 2, the second among 1 to 3 (MmadWithSparse.md, table 2).
#include <cstring>

#include "fractal.h"
#include "schedule.h"

namespace tile_sim
{
namespace
{

constexpr int64_t index_fractal = 128;  // bytes of indices that belong to a fractal of elements

// The indices of what lies in L0B at `b`.
Operand indices_of(const Operand& b) { return {Space::IX, DType::u8, b.address / 4, machine.memory(Space::IX).bytes()}; }

// Which of four elements of k the `nth` of the two kept ones is.
int64_t selected(int first, int second, int64_t nth)
{
    if (nth == 0) return first;
    return second == 0 && first ? first : second + 1;
}

}  // namespace

void load_sparse(Operand dst, Operand src, Operand indices, int64_t start, int64_t repeat, int line)
{
    if (queued(line, [=] { load_sparse(dst, src, indices, start, repeat, line); }, dst, src, indices)) return;
    Instruction load("LoadDataWithSparse", Pipe::MTE1, line);
    load.needs(dst, Space::L0B, "destination"), load.needs(indices, Space::L1, "indices");
    check_places(load, dst, src), load.align(indices, 32, "indices");
    if (!repeat) return;
    const Operand table = indices_of(dst);
    load.reads(src, start * fractal, repeat * fractal, Instruction::Poison::carry);
    load.reads(indices, start * index_fractal, repeat * index_fractal, Instruction::Poison::carry);
    load.writes(dst, 0, repeat * fractal), load.writes(table, 0, repeat * index_fractal);
    load.check();
    load.counts("L1->L0B", repeat * fractal);
    carry(dst, 0, src, start * fractal, repeat * fractal);
    carry(table, 0, indices, start * index_fractal, repeat * index_fractal);
}

namespace
{

// A product of m x k and of k / 2 kept rows: where the bytes of its operands lie.
struct SparseProduct {
    Operand dst, a, b, table;
    MmadShape s;
    int64_t across, kept, m16, n16;

    SparseProduct(const Operand& result, const Operand& left, const Operand& right, const MmadShape& shape)
        : dst(result),
          a(left),
          b(right),
          table(indices_of(right)),
          s(shape),
          across(blocks(s.k, 32)),
          kept(blocks(s.k / 2, 32)),
          m16(blocks(s.m, 16)),
          n16(blocks(s.n, 16))
    {
    }
    int64_t left(int64_t i, int64_t p) const { return (i / 16 * across + p / 32) * fractal + i % 16 * 32 + p % 32; }
    int64_t right(int64_t p, int64_t j) const { return (p / 32 * n16 + j / 16) * fractal + j % 16 * 32 + p % 32; }
    int64_t index(int64_t p, int64_t j) const { return (p / 32 * n16 + j / 16) * index_fractal + j % 16 * 8 + p % 32 / 4; }
    int64_t result(int64_t i, int64_t j) const { return ((j / 16 * m16 * 16 + i) * 16 + j % 16) * 4; }

    void declare(Instruction& product) const
    {
        for (int64_t i = 0; i < s.m; ++i)
            for (int64_t p = 0; p < s.k; p += 32) product.reads(a, left(i, p), std::min<int64_t>(32, s.k - p));
        for (int64_t p = 0; p < s.k / 2; p += 32) {
            const int64_t there = std::min<int64_t>(32, s.k / 2 - p);
            for (int64_t j = 0; j < s.n; ++j) product.reads(b, right(p, j), there);
            for (int64_t j = 0; j < s.n; ++j) product.reads(table, index(p, j), (there + 3) / 4);
        }
        if (!s.init) product.reads(dst, 0, m16 * n16 * 1024);
        product.writes(dst, 0, m16 * n16 * 1024);
    }
    int32_t sum(const Instruction& product, int64_t i, int64_t j) const
    {
        int32_t total = 0;
        for (int64_t p = 0; p < s.k / 2; ++p) {
            const int pair = *product.data(table, index(p, j)) >> p % 4 / 2 * 4 & 15;
            const int64_t place = p / 2 * 4 + selected(pair & 3, pair >> 2, p % 2);
            total += int8_t(*product.data(a, left(i, place))) * int8_t(*product.data(b, right(p, j)));
        }
        return total;
    }
};

}  // namespace

void mmad_sparse(Operand dst, Operand a, Operand b, MmadShape s, int line)
{
    if (queued(line, [=] { mmad_sparse(dst, a, b, s, line); }, dst, a, b)) return;
    Instruction product("MmadWithSparse", Pipe::M, line);
    product.needs(dst, Space::L0C, "destination"), product.needs(a, Space::L0A, "left operand"),
        product.needs(b, Space::L0B, "right operand");
    product.align(dst, 1024, "destination"), product.align(a, fractal, "left operand"),
        product.align(b, fractal, "right operand");
    if (!s.m || !s.n || !s.k) return;
    if (s.k % 4) misuse("field", line, "MmadParams.k of MmadWithSparse is %lld, and must be a multiple of 4", (long long)s.k);
    if (s.from_bias && !s.init) misuse("unsupported", line, "the simulator knows MmadWithSparse without a bias");
    const SparseProduct way(dst, a, b, s);
    product.unit_flag(s.unit_flag), product.guarded((s.m / 16) * (s.n / 16) >= 10);
    way.declare(product);
    product.check();
    product.sized(s.m, s.n, s.k, 1);
    product.counts("macs", s.m * s.n * s.k);
    for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) {
            int32_t before = 0;
            if (!s.init) std::memcpy(&before, product.data(dst, way.result(i, j)), 4);
            const int32_t after = before + way.sum(product, i, j);
            std::memcpy(product.data(dst, way.result(i, j)), &after, 4);
        }
}

}  // namespace tile_sim
