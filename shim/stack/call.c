#include "call.h"

__thread struct gps_call gps_call;
