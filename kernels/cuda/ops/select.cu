// where: y = condition ? a : b.
//
// Algorithm: a thread computes 8 elements, a block 2,048, in accesses of at most 16 bytes, mapped
// as in map.cuh; element by element where no wide access fits. Both sides are read. Shared bytes:
// none. Bound: memory. Bytes moved: operands read and the result written once, the minimum unless
// whole regions take one side.
#include "halftone/kernels/cuda/device/map.cuh"
#include "halftone/kernels/cuda/ops/select.h"

namespace halftone::cuda {
namespace {

// W neighbours from x on, or one value W times.
template <typename T, int W>
__device__ __forceinline__ Pack<T, W> Fetch(const T* x, bool varies) {
  if (varies) return *reinterpret_cast<const Pack<T, W>*>(x);
  Pack<T, W> pack;
#pragma unroll
  for (int i = 0; i < W; ++i) pack.v[i] = *x;
  return pack;
}

template <typename T, int W>
__device__ __forceinline__ void SelectRun(const SelectParams& p, int64_t position) {
  int64_t at[3];
  Locate(p.index, position, at);
  const int64_t(&inner)[3] = p.index.strides[p.index.axes - 1];
  const auto c = Fetch<uint8_t, W>(p.condition + at[0], inner[0] != 0);
  const auto a = Fetch<T, W>(static_cast<const T*>(p.a) + at[1], inner[1] != 0);
  const auto b = Fetch<T, W>(static_cast<const T*>(p.b) + at[2], inner[2] != 0);
  Pack<T, W> y;
#pragma unroll
  for (int i = 0; i < W; ++i) y.v[i] = c.v[i] != 0 ? a.v[i] : b.v[i];
  StoreWhole(y, static_cast<T*>(p.y) + position);
}

template <typename T>
__global__ void __launch_bounds__(kMapThreads) SelectKernel(SelectParams p) {
  constexpr int kWidest = sizeof(T) <= 2 ? 8 : sizeof(T) == 4 ? 4 : 1;
#pragma unroll 1
  for (int j = 0; j < kMapElements; j += p.width) {
    const int64_t position = MapPosition(p.width, j);
    if (position + p.width <= p.size) {
      if (p.width == kWidest) {
        SelectRun<T, kWidest>(p, position);
      } else if (p.width == 4) {
        SelectRun<T, sizeof(T) <= 4 ? 4 : 1>(p, position);
      } else {
        SelectRun<T, 1>(p, position);
      }
    } else {
      for (int64_t i = position; i < p.size; ++i) SelectRun<T, 1>(p, i);
    }
  }
}

template <typename T>
cudaError_t LaunchSized(const SelectParams& params, cudaStream_t stream) {
  return LaunchKernel(SelectKernel<T>, MapGrid(params.size), kMapThreads, 0, stream, params);
}

}  // namespace

cudaError_t LaunchSelect(const SelectParams& params, cudaStream_t stream) {
  switch (params.element_size) {
    case 1:
      return LaunchSized<uint8_t>(params, stream);
    case 2:
      return LaunchSized<uint16_t>(params, stream);
    case 4:
      return LaunchSized<uint32_t>(params, stream);
    default:
      return LaunchSized<uint64_t>(params, stream);
  }
}

}  // namespace halftone::cuda
