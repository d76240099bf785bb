// Records of what a run computes, for whoever looks for the first value that is not what it should be.
#pragma once
#include <cstdint>

namespace tile_sim
{

void watch_into(int file, int64_t tile);  // -1: of all, without what results hold; -2: of all, with that
bool watching();

}  // namespace tile_sim
