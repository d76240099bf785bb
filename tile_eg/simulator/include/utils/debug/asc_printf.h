// What a kernel prints comes with kernel_operator.h.
#pragma once
#include "../../kernel_operator.h"
