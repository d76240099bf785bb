// Products that are exact in float, as those of halves are: where the machine multiplies and adds in one instruction, which rounds
// once, the sums are the same.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=fast")
#elif defined(__clang__)
#pragma clang fp contract(fast)
#endif
#include "product.h"

namespace tile_sim
{

void add_exact_products(const Product<float>& product) { Multiplier<float, true>(product).run(); }

}  // namespace tile_sim
