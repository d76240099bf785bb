#pragma once

namespace tile_sim
{

// Behind the division by 0 that raised SIGFPE, given what the signal's handler gets; false where something else did.
bool past_division(void* context);

}  // namespace tile_sim
