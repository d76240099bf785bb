// The runtime part of the host API comes with the rest.
#pragma once
#include "acl.h"
