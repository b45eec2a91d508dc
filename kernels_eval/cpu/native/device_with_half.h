// device.h and the 16-bit floats.
#define KE_WITH_HALF
#include "device.h"
