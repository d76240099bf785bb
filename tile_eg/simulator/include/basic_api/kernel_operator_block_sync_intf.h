// A part of kernel_operator.h, all of which comes with it.
#pragma once
#include "../kernel_operator.h"
