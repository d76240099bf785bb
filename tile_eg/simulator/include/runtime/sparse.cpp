// 4:2 structured sparsity: of every four elements of k the right operand keeps two, and an index of 2 bits says which each of them
// was: the first among elements 0 to 2, the second among 1 to 3 (MmadWithSparse.md, table 2).
#include <cstring>
#include <vector>

#include "fractal.h"
#include "schedule.h"

namespace tile_sim
{
namespace
{

constexpr int64_t index_fractal = 128;  // bytes of indices that belong to a fractal of elements

// The indices of what lies in L0B at `b`.
Operand indices_of(const Operand& b)
{
    return {Space::IX, DType::u8, b.address / 4, machine.memory(Space::IX).bytes()};
}

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

void mmad_sparse(Operand dst, Operand a, Operand b, MmadShape s, int line)
{
    if (queued(line, [=] { mmad_sparse(dst, a, b, s, line); }, dst, a, b)) return;
    Instruction product("MmadWithSparse", Pipe::M, line);
    product.needs(dst, Space::L0C, "destination"), product.needs(a, Space::L0A, "left operand"), product.needs(b, Space::L0B, "right operand");
    product.align(dst, 1024, "destination"), product.align(a, fractal, "left operand"), product.align(b, fractal, "right operand");
    if (!s.m || !s.n || !s.k) return;
    if (s.k % 4) misuse("field", line, "MmadParams.k of MmadWithSparse is %lld, and must be a multiple of 4", (long long)s.k);
    if (s.from_bias && !s.init) misuse("unsupported", line, "the simulator knows MmadWithSparse without a bias");
    const int64_t across = blocks(s.k, 32), kept = blocks(s.k / 2, 32), m16 = blocks(s.m, 16), n16 = blocks(s.n, 16);
    const int64_t result = m16 * n16 * 1024;
    const Operand table = indices_of(b);
    product.unit_flag(s.unit_flag), product.guarded((s.m / 16) * (s.n / 16) >= 10);
    for (int64_t i = 0; i < s.m; ++i)
        for (int64_t p = 0; p < across; ++p) product.reads(a, (i / 16 * across + p) * fractal + i % 16 * 32, std::min<int64_t>(32, s.k - p * 32));
    for (int64_t p = 0; p < kept; ++p) {
        const int64_t there = std::min<int64_t>(32, s.k / 2 - p * 32);
        for (int64_t j = 0; j < s.n; ++j) product.reads(b, (p * n16 + j / 16) * fractal + j % 16 * 32, there);
        for (int64_t j = 0; j < s.n; ++j) product.reads(table, (p * n16 + j / 16) * index_fractal + j % 16 * 8, there / 4);
    }
    if (!s.init) product.reads(dst, 0, result);
    product.writes(dst, 0, result);
    product.check();
    product.sized(s.m, s.n, s.k, 1);
    product.counts("macs", s.m * s.n * s.k);
    const auto left = [&](int64_t i, int64_t p) { return int8_t(*product.data(a, (i / 16 * across + p / 32) * fractal + i % 16 * 32 + p % 32)); };
    const auto sum = [&](int64_t i, int64_t j) {
        int32_t total = 0;
        for (int64_t p = 0; p < s.k / 2; ++p) {
            const int64_t block = p / 32 * n16 + j / 16, pair = j % 16 * 32 + p % 32 / 2 * 2;
            const uint8_t byte = *product.data(table, block * index_fractal + pair / 4);
            const int shift = int(pair % 4) * 2;
            const int64_t place = selected(byte >> shift & 3, byte >> (shift + 2) & 3, p % 2);
            total += left(i, p / 2 * 4 + place) * int8_t(*product.data(b, block * fractal + j % 16 * 32 + p % 32));
        }
        return total;
    };
    for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) {
            uint8_t* const at = product.data(dst, ((j / 16 * m16 * 16 + i) * 16 + j % 16) * 4);
            int32_t before = 0;
            if (!s.init) std::memcpy(&before, at, 4);
            const int32_t after = before + sum(i, j);
            std::memcpy(at, &after, 4);
        }
}

}  // namespace tile_sim
