// Copies between GM, L1 and UB. A copy carries what it copies, the poison of unwritten bytes included.
#include <cstring>

#include "schedule.h"

namespace tile_sim
{
namespace
{

struct Path {
    Pipe pipe;
    const char* name;
};

Path path_of(Space dst, Space src, const char* what, int line)
{
    if (src == Space::GM && dst == Space::UB) return {Pipe::MTE2, "GM->UB"};
    if (src == Space::GM && dst == Space::L1) return {Pipe::MTE2, "GM->L1"};
    if (src == Space::UB && dst == Space::GM) return {Pipe::MTE3, "UB->GM"};
    if (src == Space::L1 && dst == Space::GM && !machine.settings.direct_paths()) return {Pipe::MTE3, "L1->GM"};
    if (src == Space::UB && dst == Space::L1 && machine.settings.direct_paths()) return {Pipe::MTE3, "UB->L1"};
    if (src == Space::L1 && dst == Space::UB && machine.settings.direct_paths()) return {Pipe::MTE1, "L1->UB"};
    if (src == Space::UB && dst == Space::UB) return {Pipe::V, "UB->UB"};
    misuse("wrong_memory", line, "%s: there is no path from %s to %s on this architecture", what, name_of(src), name_of(dst));
}

}  // namespace

void carry(const Operand& dst, int64_t to, const Operand& src, int64_t from, int64_t bytes)
{
    Memory &into = machine.memory(dst), &out_of = machine.memory(src);
    to += dst.address, from += src.address;
    std::memmove(into.at(to), out_of.at(from), size_t(bytes));
    if (!out_of.poisoned(from, from + bytes)) return;
    for (int64_t i = 0; i < bytes; i += granule)
        if (out_of.poisoned(from + i, from + i + 1)) into.poison(to + i, std::min(to + i + granule, to + bytes), true);
}

// An operand in the memory of another core of the block.
void meet(Operand& operand, int core, int line)
{
    operand.core = core;
    if (!machine.cores[core].present)
        misuse("wrong_core", line, "%s of %s is another core's, which this kernel has not", name_of(operand.space),
               core_name(core));
}

Operand beside_cube(Operand ub, bool second, int line)
{
    meet(ub, second ? AIV1 : AIV0, line);
    return ub;
}

void copy_to_vector_core(Operand dst, Operand src, Rows rows, int64_t sub_block, int line)
{
    if (dst.space != Space::UB || src.space != Space::L1)
        misuse("wrong_memory", line, "DataCopyL1ToUB copies from L1 to UB, not from %s to %s", name_of(src.space),
               name_of(dst.space));
    meet(dst, AIV0 + int(sub_block), line);
    copy_rows("DataCopyL1ToUB", dst, src, rows, line);
}

void copy_rows(const char* name, Operand dst, Operand src, Rows rows, int line)
{
    if (queued(line, [=] { copy_rows(name, dst, src, rows, line); }, dst, src)) return;
    const Path path = path_of(dst.space, src.space, name, line);
    Instruction copy(name, path.pipe, line);
    if (src.space == Space::UB && dst.space == Space::L1) meet(dst, AIC, line);
    if (!rows.count || !rows.bytes) return;
    if (dst.space != Space::GM) copy.align(dst, 32, "destination");
    if (src.space != Space::GM) copy.align(src, 32, "source");
    const bool store = dst.space == Space::GM;
    const bool add = store && machine.core->atomic != AtomicOp::none;
    copy.atomic(add);
    for (int64_t i = 0; i < rows.count; ++i) {
        copy.reads(src, i * rows.src_stride, rows.bytes, store ? Instruction::Poison::error : Instruction::Poison::carry);
        if (add) copy.reads(dst, i * rows.dst_stride, rows.bytes);
        copy.writes(dst, i * rows.dst_stride, rows.bytes);
    }
    copy.check();
    copy.sized(rows.count, rows.bytes, store ? rows.dst_stride : rows.src_stride, size_of(dst.type));
    copy.counts(path.name, rows.count * rows.bytes);
    for (int64_t i = 0; i < rows.count; ++i) {
        if (add)
            apply_atomic(copy.data(dst, i * rows.dst_stride), copy.data(src, i * rows.src_stride), rows.bytes, dst.type, line);
        else
            carry(dst, i * rows.dst_stride, src, i * rows.src_stride, rows.bytes);
    }
}

namespace
{

// What stands beside a row in UB. The vendor: with isPad the given value; without it, and with left or right padding,
// anything; without any padding, the tail up to 32 bytes repeats the row's first element.
void fill_side(const Instruction& copy, const Operand& dst, int64_t begin, int64_t end, const Padding& padding,
               const uint8_t* first)
{
    const int64_t size = size_of(dst.type);
    const bool repeats = !padding.left && !padding.right;
    for (int64_t i = begin; i < end; i += size)
        std::memcpy(copy.data(dst, i), repeats ? first : reinterpret_cast<const uint8_t*>(&padding.value), size_t(size));
    if (!repeats && !padding.given) machine.memory(dst.space).poison(dst.address + begin, dst.address + end, true);
}

}  // namespace

void copy_pad_in(Operand dst, Operand src, Rows rows, Padding padding, int line)
{
    if (queued(line, [=] { copy_pad_in(dst, src, rows, padding, line); }, dst, src)) return;
    Instruction copy("DataCopyPad", Pipe::MTE2, line);
    if (!padding.given && machine.core->pad_given) padding.given = true, padding.value = machine.core->pad_value;
    copy.needs(dst, Space::UB, "destination");
    if (!rows.count || !rows.bytes) return;
    copy.align(dst, 32, "destination");
    const int64_t size = size_of(dst.type), left = padding.left * size;
    const int64_t whole = (left + rows.bytes + padding.right * size + 31) / 32 * 32;
    for (int64_t i = 0; i < rows.count; ++i) {
        copy.reads(src, i * rows.src_stride, rows.bytes, Instruction::Poison::carry);
        copy.writes(dst, i * rows.dst_stride, whole);
    }
    copy.check();
    copy.sized(rows.count, rows.bytes, rows.src_stride, size);
    copy.counts("GM->UB", rows.count * rows.bytes);
    for (int64_t i = 0; i < rows.count; ++i) {
        const int64_t row = i * rows.dst_stride;
        const uint8_t* first = copy.data(src, i * rows.src_stride);
        fill_side(copy, dst, row, row + left, padding, first);
        fill_side(copy, dst, row + left + rows.bytes, row + whole, padding, first);
        carry(dst, row + left, src, i * rows.src_stride, rows.bytes);
    }
}

// A block of 32 bytes of NZ for each column of the source, of as many of its rows.
void copy_dn2nz(Operand dst, Operand src, Nd2Nz s, int line)
{
    if (queued(line, [=] { copy_dn2nz(dst, src, s, line); }, dst, src)) return;
    Instruction copy("DataCopy", Pipe::MTE2, line);
    copy.needs(dst, Space::L1, "destination");
    if (!s.matrices || !s.rows || !s.cols) return;
    copy.align(dst, 32, "destination");
    const int64_t size = size_of(dst.type), c0 = 32 / size, n = s.rows, d = s.cols, blocks = (d + c0 - 1) / c0;
    if (blocks > 1 && s.dst_row_stride == 1 && s.dst_c0_stride < n)
        misuse("overlap", line, "blocks of rows overlap in L1: %lld columns, and %lld from one block to the next", (long long)n,
               (long long)s.dst_c0_stride);
    const auto from = [&](int64_t matrix, int64_t row) { return (matrix * s.src_matrix_stride + row * s.src_row_stride) * size; };
    const auto to = [&](int64_t matrix, int64_t column, int64_t block) {
        return matrix * s.dst_matrix_stride * size + (block * s.dst_c0_stride + column * s.dst_row_stride) * 32;
    };
    for (int64_t m = 0; m < s.matrices; ++m) {
        for (int64_t row = 0; row < d; ++row) copy.reads(src, from(m, row), n * size, Instruction::Poison::carry);
        for (int64_t block = 0; block < blocks; ++block)
            if (s.dst_row_stride == 1)
                copy.writes_in_a_row(dst, to(m, 0, block), n * 32, 32);
            else
                for (int64_t column = 0; column < n; ++column) copy.writes(dst, to(m, column, block), 32);
    }
    copy.check();
    copy.sized(s.matrices * d, n * size, s.src_row_stride * size, size);
    copy.makes_nz();
    copy.counts("GM->L1", s.matrices * n * d * size);
    for (int64_t m = 0; m < s.matrices; ++m)
        for (int64_t block = 0; block < blocks; ++block)
            for (int64_t column = 0; column < n; ++column) {
                std::memset(copy.data(dst, to(m, column, block)), 0, 32);  // rows that there are not are zero up to 32 bytes
                for (int64_t row = block * c0; row < std::min(d, (block + 1) * c0); ++row)
                    carry(dst, to(m, column, block) + row % c0 * size, src, from(m, row) + column * size, size);
            }
}

void copy_nd2nz(Operand dst, Operand src, Nd2Nz s, int line)
{
    if (queued(line, [=] { copy_nd2nz(dst, src, s, line); }, dst, src)) return;
    Instruction copy("DataCopy", Pipe::MTE2, line);
    copy.needs(dst, Space::L1, "destination");
    if (!s.matrices || !s.rows || !s.cols) return;
    copy.align(dst, 32, "destination");
    const int64_t size = size_of(dst.type), c0 = 32 / size, columns = (s.cols + c0 - 1) / c0;
    if (columns > 1 && s.dst_row_stride == 1 && s.dst_c0_stride < s.rows)
        misuse("overlap", line, "column blocks overlap in L1: %lld rows, and %lld from one block to the next", (long long)s.rows,
               (long long)s.dst_c0_stride);
    const auto row_at = [&](int64_t matrix, int64_t row) {
        return (matrix * s.src_matrix_stride + row * s.src_row_stride) * size;
    };
    const auto block_at = [&](int64_t matrix, int64_t row, int64_t column) {
        return matrix * s.dst_matrix_stride * size + (column * s.dst_c0_stride + row * s.dst_row_stride) * 32;
    };
    for (int64_t m = 0; m < s.matrices; ++m) {
        for (int64_t r = 0; r < s.rows; ++r) copy.reads(src, row_at(m, r), s.cols * size, Instruction::Poison::carry);
        for (int64_t c = 0; c < columns; ++c)
            if (s.dst_row_stride == 1)
                copy.writes_in_a_row(dst, block_at(m, 0, c), s.rows * 32, 32);
            else
                for (int64_t r = 0; r < s.rows; ++r) copy.writes(dst, block_at(m, r, c), 32);
    }
    copy.check();
    copy.sized(s.matrices * s.rows, s.cols * size, s.src_row_stride * size, size);
    copy.makes_nz();
    copy.counts("GM->L1", s.matrices * s.rows * s.cols * size);
    for (int64_t m = 0; m < s.matrices; ++m)
        for (int64_t r = 0; r < s.rows; ++r) {
            const int64_t from = src.address + row_at(m, r);
            const bool written = !machine.memory(src).poisoned(from, from + s.cols * size);
            for (int64_t c = 0; c < columns; ++c) {
                const int64_t to = block_at(m, r, c), bytes = std::min<int64_t>(32, (s.cols - c * c0) * size);
                if (written && bytes == 32) {
                    std::memcpy(copy.data(dst, to), copy.data(src, row_at(m, r) + c * 32), 32);
                    continue;
                }
                std::memset(copy.data(dst, to), 0, 32);  // the tail of a row is zero up to 32 bytes
                carry(dst, to, src, row_at(m, r) + c * 32, bytes);
            }
        }
}

}  // namespace tile_sim
