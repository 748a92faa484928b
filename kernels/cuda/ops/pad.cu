// pad: a thread finds for each of its elements of y the element of x, axis by axis from the inner
// one, and copies it by its size. Neighbouring threads write neighbours, and read neighbours but at
// the edges. Shared bytes: none. Bound: memory, up to about 4 axes. Bytes moved: x and y once, what
// is repeated again from the caches.
#include "halftone/kernels/cuda/device/wide_divisor.cuh"
#include "halftone/kernels/cuda/ops/pad.h"

namespace halftone::cuda {
namespace {

constexpr int kPadThreads = 256;

template <typename T>
__global__ void __launch_bounds__(kPadThreads) PadKernel(PadParams p, const T* x, T* y) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kPadThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kPadThreads + threadIdx.x; i < p.size;
       i += step) {
    int64_t from = 0, rest = i;
#pragma unroll 1
    for (int axis = 0; axis < p.axes; ++axis) {
      const PadAxis& a = p.axis[axis];
      const Division place = Divide(rest, a.extent);
      const int64_t at = ops::PaddedFrom(p.mode, place.rest, a.before, a.size);
      rest = place.quotient;
      from = at < 0 || from < 0 ? -1 : from + at * a.stride;
    }
    y[i] = from < 0 ? static_cast<T>(p.value) : x[from];
  }
}

template <typename T>
cudaError_t LaunchSized(const PadParams& p, const void* x, void* y, cudaStream_t stream) {
  const int64_t blocks = (p.size + kPadThreads - 1) / kPadThreads, most = int64_t{1} << 24;
  return LaunchKernel(PadKernel<T>, dim3(static_cast<unsigned>(blocks < most ? blocks : most)),
                      kPadThreads, 0, stream, p, static_cast<const T*>(x), static_cast<T*>(y));
}

}  // namespace

cudaError_t LaunchPad(const PadParams& p, const void* x, void* y, cudaStream_t stream) {
  switch (p.element_size) {
    case 1:
      return LaunchSized<uint8_t>(p, x, y, stream);
    case 2:
      return LaunchSized<uint16_t>(p, x, y, stream);
    case 4:
      return LaunchSized<uint32_t>(p, x, y, stream);
    default:
      return LaunchSized<uint64_t>(p, x, y, stream);
  }
}

}  // namespace halftone::cuda
