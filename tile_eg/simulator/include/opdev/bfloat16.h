// The host's bfloat16, by the name that CANN's operator headers give it.
#pragma once
#include "../ascend_c/types.h"

namespace op
{
using bfloat16 = ::bfloat16_t;
}
