// The conversions of Fixpipe on its way out of L0C.
#pragma once
#include "machine.h"

namespace tile_sim
{

// In the order of QuantMode_t.
enum class Quantisation : uint8_t {
    none, to_half, to_bf16, dequantise, dequantise_columns, float_to_byte, float_to_byte_columns, whole_to_byte,
    whole_to_byte_columns
};

struct Conversion {
    Quantisation how;
    uint64_t scale;  // QUANT_PRE
    bool relu;
    int line;
};

void check_quantisation(DType dst, DType src, Quantisation how, bool per_column, int line);
void convert(uint8_t* to, const uint8_t* from, DType dst, const Conversion& conversion);  // one element
// Elements one behind the other, of which each has its own scale.
void convert_row(uint8_t* to, const uint8_t* from, DType dst, Conversion conversion, const uint64_t* scales, int64_t count);

}  // namespace tile_sim
