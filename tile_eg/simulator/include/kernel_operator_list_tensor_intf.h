// Lists of tensors behind one pointer.
#pragma once
#include "ascend_c/list_tensor.h"
