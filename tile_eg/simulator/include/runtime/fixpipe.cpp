// The ways out of L0C, with what Fixpipe does to the numbers on the way.
#include <algorithm>
#include <cstring>
#include <vector>

#include "quantise.h"
#include "schedule.h"

namespace tile_sim
{
namespace
{

void check_place(const Operand& dst, const Operand& src, const FixpipeShape& s, const Instruction& out)
{
    const bool to_ub = dst.space == Space::UB;
    out.needs(src, Space::L0C, "source"), out.align(src, 64, "source");
    if (dst.space != Space::GM && !(to_ub && machine.settings.direct_paths())) out.needs(dst, Space::L1, "destination");
    if (dst.space != Space::GM) out.align(dst, 32, "destination");
    if (dst.space == Space::L1 && Quantisation(s.quantisation) == Quantisation::none && !machine.settings.direct_paths())
        misuse("field", out.line(), "Fixpipe to L1 takes no unconverted float or int32_t on this architecture");
}

void check_destinations(const FixpipeShape& s, const Operand& dst, int line)
{
    if (s.destinations == Destinations::one) return;
    const bool by_rows = s.destinations == Destinations::by_rows;
    if (dst.space != Space::UB || machine.vector_cores() != 2)
        misuse("field", line, "dualDstCtl is for UB, in kernels of one cube core and two vector cores");
    if (Quantisation(s.quantisation) != Quantisation::none || s.relu || s.channel_split || s.layout == Layout::column_major)
        misuse("field", line, "dualDstCtl goes with NZ and rows, and with no conversion and no ReLU");
    if (by_rows ? s.m % 2 : s.n % 32)
        misuse("field", line,
               by_rows ? "dualDstCtl = 1 takes an even mSize, not %lld"
                       : "dualDstCtl = 2 takes an nSize that is a multiple of 32, not %lld",
               (long long)(by_rows ? s.m : s.n));
}

void check_fixpipe(const Operand& dst, const Operand& src, const FixpipeShape& s, const Instruction& out)
{
    const int line = out.line();
    const bool nz = s.layout == Layout::nz;
    check_place(dst, src, s, out);
    check_quantisation(dst.type, src.type, Quantisation(s.quantisation), s.per_column, line);
    check_destinations(s, dst, line);
    if (s.channel_split && (dst.type != DType::f32 || src.type != DType::f32 || !nz || s.unit_flag || dst.space != Space::GM))
        misuse("field", line, "isChannelSplit is for float in NZ to GM, without unit flags");
    if (nz && s.n % (s.channel_split ? 8 : 16))
        misuse("field", line, "nSize of %s is %lld, and must be a multiple of %d for NZ", out.name(), (long long)s.n,
               s.channel_split ? 8 : 16);
    const int64_t lines = s.layout == Layout::row_major ? s.m : s.n, length = s.layout == Layout::row_major ? s.n : s.m;
    const int64_t parts = s.destinations == Destinations::by_columns ? 2 : 1;
    if (!nz && lines > 1 && s.dst_stride < length / parts)
        misuse("overlap", line, "the %s of %s overlap: %lld elements, and %lld from one to the next",
               s.layout == Layout::row_major ? "rows" : "columns", out.name(), (long long)(length / parts),
               (long long)s.dst_stride);
    if (!s.dst_stride) misuse("field", line, "dstStride of %s is 0", out.name());
    const int64_t row = s.channel_split ? 32 : std::max<int64_t>(32, 16 * size_of(dst.type)),
                  m = s.destinations == Destinations::by_rows ? s.m / 2 : s.m;
    if (nz && s.n * size_of(dst.type) / parts > row && s.dst_stride * 32 < m * row)
        misuse("overlap", line, "the column blocks of %s overlap: %lld rows of %lld bytes, and %lld bytes from one to the next",
               out.name(), (long long)m, (long long)row, (long long)s.dst_stride * 32);
    if (s.per_column && s.scales.space != Space::FB)
        out.needs(s.scales, Space::L1, "table of scales"), out.align(s.scales, 32, "table of scales");
}

// Where row `i` of column `j` goes, in bytes. Bytes in NZ come in blocks of 32 columns, but for a last odd block of 16 (the
// vendor's page on Int8 Channel Merge).
int64_t target(const FixpipeShape& s, int64_t size, int64_t i, int64_t j)
{
    if (s.layout == Layout::row_major) return (i * s.dst_stride + j) * size;
    if (s.layout == Layout::column_major) return (j * s.dst_stride + i) * size;
    if (s.channel_split) return j / 8 * s.dst_stride * 32 + i * 32 + j % 8 * 4;
    if (size != 1) return j / 16 * s.dst_stride * 32 + (i * 16 + j % 16) * size;
    const bool merged = j / 32 * 32 + 32 <= s.n;
    return j / 32 * s.dst_stride * 32 + (merged ? i * 32 + j % 32 : i * 16 + j % 16);
}

// A run of elements of one row that lie together on both sides: bytes from the start of each, and the column.
struct Piece {
    Operand into;
    int64_t to, from, count, column;
};

template <class Visit>
void each_piece(const Operand& dst, const FixpipeShape& s, Visit&& visit)
{
    const int64_t size = size_of(dst.type), matrices = s.layout == Layout::nz ? 1 : s.matrices;
    const int64_t run = s.layout == Layout::column_major ? 1 : s.channel_split ? 8 : 16;
    const int64_t half_m = s.destinations == Destinations::by_rows ? s.m / 2 : s.m;
    const int64_t half_n = s.destinations == Destinations::by_columns ? s.n / 2 : s.n;
    for (int64_t matrix = 0; matrix < matrices; ++matrix)
        for (int64_t j = 0; j < s.n; j += run)
            for (int64_t i = 0; i < s.m; ++i) {
                Operand into = dst;
                if (s.destinations != Destinations::one) into.core = i >= half_m || j >= half_n ? AIV1 : AIV0;
                const int64_t start = s.layout == Layout::nz ? 0 : matrix * s.dst_matrix_stride * size;
                visit(Piece{into, start + target(s, size, i % half_m, j % half_n),
                            matrix * s.src_matrix_stride + (j / 16 * s.src_stride + i * s.src_row_stride) * 64 + j % 16 * 4,
                            std::min<int64_t>(run, s.n - j), j});
            }
}

const char* path_of(const Operand& dst)
{
    return dst.space == Space::GM ? "L0C->GM" : dst.space == Space::L1 ? "L0C->L1" : "L0C->UB";
}

// The scales of all columns. They are in the Fixpipe buffer before the first result leaves L0C, so that results may overwrite
// L1's.
std::vector<uint64_t> scales_of(const Instruction& out, const FixpipeShape& s)
{
    std::vector<uint64_t> scales(size_t(s.n), s.scale);
    if (s.per_column) std::memcpy(scales.data(), out.data(s.scales), size_t(s.n) * 8);
    return scales;
}

}  // namespace

FixpipeRegister& fixpipe_register() { return machine.core->fixpipe; }

void fixpipe(const char* name, Operand dst, Operand src, FixpipeShape s, int line)
{
    if (queued(line, [=] { fixpipe(name, dst, src, s, line); }, dst, src)) return;
    Instruction out(name, Pipe::FIX, line);
    check_fixpipe(dst, src, s, out);
    const bool to_gm = dst.space == Space::GM, add = to_gm && machine.core->atomic != AtomicOp::none;
    const int64_t size = size_of(dst.type), matrices = s.layout == Layout::nz ? 1 : s.matrices;
    if (!s.m || !s.n || !matrices) return;
    out.unit_flag(s.unit_flag), out.atomic(add);
    each_piece(dst, s, [&](const Piece& piece) {
        out.reads(src, piece.from, piece.count * 4, to_gm ? Instruction::Poison::error : Instruction::Poison::carry);
        if (add) out.reads(dst, piece.to, piece.count * size);
        out.writes(piece.into, piece.to, piece.count * size);
    });
    if (s.per_column) out.reads(s.scales, 0, s.n * 8);
    out.check();
    const int64_t cores = s.destinations == Destinations::one ? 1 : 2;
    out.sized(s.m * matrices, s.n * size, dst.space == Space::UB ? cores : s.dst_stride * size, size);
    out.counts(path_of(dst), s.m * s.n * matrices * size);
    Memory& from = machine.memory(src);
    const std::vector<uint64_t> scales = scales_of(out, s);
    each_piece(dst, s, [&](const Piece& piece) {
        uint8_t converted[64];
        convert_row(converted, out.data(src, piece.from), dst.type, {Quantisation(s.quantisation), 0, s.relu, line},
                    &scales[size_t(piece.column)], piece.count);
        if (add) return apply_atomic(out.data(dst, piece.to), converted, piece.count * size, dst.type, line);
        std::memcpy(out.data(piece.into, piece.to), converted, size_t(piece.count * size));
        const int64_t first = src.address + piece.from;
        if (to_gm || !from.poisoned(first, first + piece.count * 4)) return;
        for (int64_t e = 0; e < piece.count; ++e)
            if (from.poisoned(first + e * 4, first + e * 4 + 4))
                machine.memory(piece.into)
                    .poison(dst.address + piece.to + e * size, dst.address + piece.to + (e + 1) * size, true);
    });
}

}  // namespace tile_sim
