// Every product and every sum is rounded.
#include "product.h"

namespace tile_sim
{

void add_products(const Product<float>& product) { Multiplier<float, false>(product).run(); }
void add_products(const Product<int32_t>& product) { Multiplier<int32_t, false>(product).run(); }

}  // namespace tile_sim
