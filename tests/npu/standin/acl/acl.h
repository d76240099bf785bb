// What of ACL tile_eg calls, with the signatures and numbers of CANN's own acl_rt.h (tests/npu/test_headers.py holds one to the other).
#pragma once
#include "acl_rt.h"
