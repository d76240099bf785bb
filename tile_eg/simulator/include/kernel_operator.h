// An Ascend C for the CPU: what a kernel includes. The instructions run in the simulator's runtime (runtime/).
#pragma once
#include "ascend_c/copy.h"
#include "ascend_c/cube.h"
#include "ascend_c/debug.h"
#include "ascend_c/params.h"
#include "ascend_c/queue.h"
#include "ascend_c/sync.h"
#include "ascend_c/system.h"
#include "ascend_c/tensor.h"
#include "ascend_c/types.h"
#include "ascend_c/vector.h"
