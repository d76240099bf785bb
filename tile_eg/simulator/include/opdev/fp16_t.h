// The host's half, by the name that CANN's operator headers give it.
#pragma once
#include "../ascend_c/types.h"

namespace op
{
using fp16_t = ::half;
}
