// HT_HOST_DEVICE: in front of a function that host and device code share.
#pragma once

#if defined(__CUDACC__)
#define HT_HOST_DEVICE __host__ __device__
#else
#define HT_HOST_DEVICE
#endif
