// The trailer that follows a candidate: one C entry point a launch.
#pragma once

// Entry points read the runtime's argument array, which is no buffer.
#define KE_ENTRY extern "C" __attribute__((__no_sanitize__("thread")))

#include "device_parameters.h"

namespace ke_device {
template <class To>
KE_INLINE To ke_argument(void* p) {
  return *(typename plain<To>::type*)p;
}
}  // namespace ke_device
