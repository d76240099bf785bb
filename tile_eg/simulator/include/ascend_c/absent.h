// Vector instructions of other architectures, refused by name, with what does the same here.
#pragma once
#include "tensor.h"

namespace AscendC
{
namespace detail
{
template <class...>
constexpr bool never = false;
}

#define tile_sim_absent(NAME, INSTEAD)                                                                             \
    template <class T, class... Rest>                                                                              \
    void NAME(const LocalTensor<T>&, Rest&&...)                                                                    \
    {                                                                                                              \
        static_assert(detail::never<T, Rest...>, #NAME " is not there on 2201, and not simulated: " INSTEAD);      \
    }                                                                                                              \
    template <class T, auto value, class... Rest>                                                                  \
    void NAME(const LocalTensor<T>&, Rest&&...)                                                                    \
    {                                                                                                              \
        static_assert(detail::never<T, Rest...>, #NAME " is not there on 2201, and not simulated: " INSTEAD);      \
    }

tile_sim_absent(Scatter, "turn the indices round and use Gather, or write elements with SetValue")
tile_sim_absent(RpSort16, "Sort32 sorts scores with their indices")
tile_sim_absent(MrgSort4, "MrgSort merges the lists of Sort32")
tile_sim_absent(ProposalConcat, "Sort32 takes scores and indices as they lie")
tile_sim_absent(ProposalExtract, "GatherMask, or Extract, takes scores or indices out of sorted lists")
tile_sim_absent(Interleave, "Gather by offsets lays two tensors into one another")
tile_sim_absent(DeInterleave, "GatherMask with patterns 1 and 2 takes even and odd lanes")
tile_sim_absent(VectorPadding, "Duplicate with a mask fills lanes, DataCopyPad pads rows")
tile_sim_absent(Truncate, "Cast of float to float with a rounding mode")
tile_sim_absent(Neg, "Muls by -1")
tile_sim_absent(Prelu, "LeakyRelu takes one slope; with many: Mins, Mul, Maxs, Add")
tile_sim_absent(Mull, "Mul gives the low half")
tile_sim_absent(AbsSub, "Sub, then Abs")
tile_sim_absent(ExpSub, "Sub, then Exp")
tile_sim_absent(MulsCast, "Muls, then Cast")
tile_sim_absent(Subs, "Adds of the negative scalar")
tile_sim_absent(Divs, "Muls by the reciprocal, or Div by a tensor that Duplicate fills")
tile_sim_absent(Ands, "And with a tensor that Duplicate fills")
tile_sim_absent(Ors, "Or with a tensor that Duplicate fills")
#undef tile_sim_absent

}  // namespace AscendC
