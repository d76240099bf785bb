// Vector instructions that multiply by the DEQSCALE register (SetDeqScale.md). The hardware keeps 10 bits of the mantissa of
// a float scale.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "lanes.h"
#include "rounding.h"
#include "schedule.h"

namespace tile_sim
{
namespace
{

struct Quantisation {
    float scale;
    int offset;
    bool is_signed;
};

Quantisation decode(uint64_t bits)
{
    const int offset = int(bits >> 37 & 0x1ff);
    return {ten_bit_mantissa(bits_float(uint32_t(bits))), offset >= 256 ? offset - 512 : offset, (bits >> 46 & 1) != 0};
}

void to_byte(uint8_t* out, double x, const Quantisation& q)
{
    const double value = std::nearbyint(x * q.scale + q.offset), low = q.is_signed ? -128 : 0, high = q.is_signed ? 127 : 255;
    *out = uint8_t(int(std::min(high, std::max(low, value))));
}

// The register holds what its last SetDeqScale says, and each instruction takes one kind (CastDequant.md).
void check_register(Deq needed, const char* name, int line)
{
    static const char* forms[] = {"", "SetDeqScale(half)", "SetDeqScale(float, int16_t, bool)", "SetDeqScale(tensor, VdeqInfo)"};
    if (machine.core->deq == Deq::none)
        misuse("uninitialised", line, "%s takes what %s sets, and nothing has set it", name, forms[int(needed)]);
    if (machine.core->deq != needed)
        misuse("field", line, "%s takes what %s sets, and the last was %s", name, forms[int(needed)], forms[int(machine.core->deq)]);
}

// int16_t to bytes: the 16 results of a block go to one half of the block of the destination, the other half stays.
void blocks_to_bytes(const char* name, VectorSide dst, const VectorSide& src, const Dequantisation& how, const Lanes& lanes,
                     int line)
{
    check_register(how.vector ? Deq::table : Deq::settings, name, line);
    Instruction quantise(name, Pipe::V, line);
    quantise.needs(dst.at, Space::UB, "destination"), quantise.needs(src.at, Space::UB, "source");
    quantise.align(dst.at, 32, "destination"), quantise.align(src.at, 32, "source");
    const Operand table{Space::UB, DType::u64, int64_t(machine.core->deq_scale), machine.settings.capacity[int(Space::UB)]};
    if (how.vector) quantise.reads(table, 0, 128);
    const auto each = [&](auto&& visit) {
        for (int64_t r = 0; r < rounds_of(lanes, 128); ++r)
            for (int64_t i = 0; i < 128; ++i)
                if (lane_active(lanes, r, i, 128))
                    visit((r * dst.stride.repeat + i / 16 * dst.stride.block) * 32 + (how.high_half ? 16 : 0) + i % 16,
                          ((r * src.stride.repeat + i / 16 * src.stride.block) * 16 + i % 16) * 2, i % 16);
    };
    each([&](int64_t to, int64_t from, int64_t) { quantise.reads(src.at, from, 2), quantise.writes(dst.at, to, 1); });
    quantise.check();
    quantise.counts("vector", rounds_of(lanes, 128) * 256);
    each([&](int64_t to, int64_t from, int64_t lane) {
        uint64_t bits = machine.core->deq_scale;
        if (how.vector) std::memcpy(&bits, quantise.data(table, lane * 8), 8);
        int16_t x;
        std::memcpy(&x, quantise.data(src.at, from), 2);
        const Quantisation q = decode(bits);
        if (q.is_signed != (dst.at.type == DType::i8))
            misuse("field", line, "signMode of SetDeqScale is true for int8_t, and false for uint8_t");
        to_byte(quantise.data(dst.at, to), x, q);
    });
}

}  // namespace

void set_deq_scale(Deq kind, uint64_t bits)
{
    machine.core->deq_scale = bits;
    machine.core->deq = kind;
}

double deq_scale(const char* name, int line)
{
    check_register(Deq::half, name, line);
    return half_to_float(uint16_t(machine.core->deq_scale));
}

void vector_dequantise(const char* name, VectorSide dst, VectorSide src, VectorSide other, Dequantisation how, Lanes lanes,
                       int line)
{
    if (queued(line, [=] { vector_dequantise(name, dst, src, other, how, lanes, line); }, dst, src, other)) return;
    if (dst.at.type != DType::f16) return blocks_to_bytes(name, dst, src, how, lanes, line);
    const VectorSide sides[] = {dst, src, other};
    const VectorInstruction v(name, line, lanes, sides, how.accumulate_relu ? 3 : 2, false);
    const double scale = deq_scale(name, line);
    for (const Run& run : v.runs())
        for (int64_t i = 0; i < run.count; ++i) {
            const int32_t a = *v.at<int32_t>(1, run.at[1] + i);
            const int32_t b = how.accumulate_relu ? *v.at<int32_t>(2, run.at[2] + i) : 0;
            const double exact = double(int32_t(int64_t(a) + b)) * scale;
            *v.at<uint16_t>(0, run.at[0] + i) = double_to_half(how.accumulate_relu && exact < 0 ? 0.0 : exact);
        }
}

}  // namespace tile_sim
