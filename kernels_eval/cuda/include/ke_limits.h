// std::numeric_limits, for texts that name it: it takes as long to read as all
// the rest of the prelude.
#pragma once

#include "../../cpu/native/device_limits.h"
