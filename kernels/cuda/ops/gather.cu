// Algorithm: copies by the bytes of a row, whatever its dtype, in units of 16 bytes or the largest
// power of two below that divides the row and the pointers. Mapping: row_groups.cuh.
// Shared bytes: none. Bound: memory. Bytes moved: each row picked once and written once, the
// minimum, and its index.
#include "halftone/kernels/cuda/device/row_groups.cuh"
#include "halftone/kernels/cuda/ops/gather.h"

namespace halftone::cuda {
namespace {

template <typename Unit>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    GatherKernel(GatherShape s, int64_t units, int lanes, const Unit* x, const void* indices,
                 Unit* y) {
  ForRowUnits(s.outer * s.picks, units, lanes, [&](int64_t row, int64_t unit) {
    const int64_t block = s.outer == 1 ? 0 : row / s.picks;
    const int64_t from = IndexAt(indices, s.wide, row - block * s.picks);
    Unit value{};
    if (from >= 0 && from < s.rows) value = x[(block * s.rows + from) * units + unit];
    y[row * units + unit] = value;
  });
}

template <typename Unit>
cudaError_t Launch(const GatherShape& s, const void* x, const void* indices, void* y,
                   cudaStream_t stream) {
  const int64_t units = s.row_bytes / static_cast<int64_t>(sizeof(Unit));
  const RowGroups groups(s.outer * s.picks, units);
  return LaunchKernel(GatherKernel<Unit>, groups.grid, kRowThreads, 0, stream, s, units,
                      groups.lanes, static_cast<const Unit*>(x), indices, static_cast<Unit*>(y));
}

}  // namespace

cudaError_t LaunchGather(const GatherShape& s, const void* x, const void* indices, void* y,
                         cudaStream_t stream) {
  if (s.outer * s.picks * s.row_bytes == 0) return cudaSuccess;
  const uintptr_t all = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y) |
                        static_cast<uintptr_t>(s.row_bytes);
  if (all % 16 == 0) return Launch<uint4>(s, x, indices, y, stream);
  if (all % 8 == 0) return Launch<uint2>(s, x, indices, y, stream);
  if (all % 4 == 0) return Launch<uint32_t>(s, x, indices, y, stream);
  if (all % 2 == 0) return Launch<uint16_t>(s, x, indices, y, stream);
  return Launch<uint8_t>(s, x, indices, y, stream);
}

}  // namespace halftone::cuda
