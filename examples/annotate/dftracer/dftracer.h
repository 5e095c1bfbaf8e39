/* So that sources which include <dftracer/dftracer.h> need no change. */
#include "../dftracer_stub.h"
