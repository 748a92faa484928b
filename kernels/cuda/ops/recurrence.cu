// What follows the product of each step of lstm, gru and their gradients.
//
// Algorithm: a thread has one unit of one row of the batch, and all of its gates: neighbouring threads
// read neighbouring units. Mapping: blocks of 128 along the units, rows along the grid's other side.
// Shared bytes: none. Expected bound: the launch itself for usual layers (32 rows of 256 units are 64
// blocks), memory beyond; everything is read and written once.
#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/ops/recurrence.h"

namespace halftone::cuda {
namespace {

using kernels::functors::SigmoidV;
using kernels::functors::TanhV;

constexpr int kUnitThreads = 128;

// x[i], or 0 without an array.
template <typename T>
__device__ Compute<T> Entry(const void* x, int64_t i) {
  return x == nullptr ? Compute<T>{0} : Widen(static_cast<const T*>(x)[i]);
}
template <typename T, typename V>
__device__ void Put(void* y, int64_t i, V value) {
  static_cast<T*>(y)[i] = Narrow<T>(value);
}

// Calls each(i, at) for the units of the batch: i of [B,H], `at` that of the first gate in [B,gates H].
template <typename F>
__device__ void ForUnits(int64_t batch, int64_t hidden, int64_t gates, const F& each) {
  for (int64_t row = blockIdx.y; row < batch; row += gridDim.y) {
    int64_t unit = int64_t{blockIdx.x} * kUnitThreads + threadIdx.x;
    for (; unit < hidden; unit += int64_t{gridDim.x} * kUnitThreads) {
      each(row * hidden + unit, row * gates * hidden + unit);
    }
  }
}

template <typename V>
__device__ V OfSigmoid(V dy, V y) {
  return dy * (y * (1 - y));
}
template <typename V>
__device__ V OfTanh(V dy, V y) {
  return dy * (1 - y * y);
}

template <typename T>
__global__ void LstmCellKernel(LstmCellArrays a, int64_t batch, int64_t hidden) {
  using V = Compute<T>;
  ForUnits(batch, hidden, 4, [&](int64_t unit, int64_t at) {
    V gate[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      gate[k] = Entry<T>(a.x, at + k * hidden) + Entry<V>(a.product, at + k * hidden);
    }
    const V i = SigmoidV(gate[0]), f = SigmoidV(gate[1]), g = TanhV(gate[2]), o = SigmoidV(gate[3]);
    const V c = f * Entry<V>(a.c_before, unit) + i * g;
    Put<T>(a.gates, at, i);
    Put<T>(a.gates, at + hidden, f);
    Put<T>(a.gates, at + 2 * hidden, g);
    Put<T>(a.gates, at + 3 * hidden, o);
    Put<V>(a.c, unit, c);
    Put<T>(a.m, unit, o * TanhV(c));
  });
}

template <typename T>
__global__ void LstmCellGradKernel(LstmCellGradArrays a, int64_t batch, int64_t hidden) {
  using V = Compute<T>;
  ForUnits(batch, hidden, 4, [&](int64_t unit, int64_t at) {
    const V dm = Entry<V>(a.product, unit) + Entry<T>(a.dh, unit);
    if (a.dh != nullptr) Put<T>(a.dh_sum, unit, dm);
    const V i = Entry<T>(a.gates, at), f = Entry<T>(a.gates, at + hidden);
    const V g = Entry<T>(a.gates, at + 2 * hidden), o = Entry<T>(a.gates, at + 3 * hidden);
    const V tanh_c = TanhV(Entry<V>(a.c, unit));
    const V dc = Entry<V>(a.dc, unit) + OfTanh(dm * o, tanh_c);
    Put<T>(a.dx, at, OfSigmoid(dc * g, i));
    Put<T>(a.dx, at + hidden, OfSigmoid(dc * Entry<V>(a.c_before, unit), f));
    Put<T>(a.dx, at + 2 * hidden, OfTanh(dc * i, g));
    Put<T>(a.dx, at + 3 * hidden, OfSigmoid(dm * tanh_c, o));
    Put<V>(a.new_dc, unit, dc * f);
  });
}

template <typename T>
__global__ void GruCellKernel(GruCellArrays a, int64_t batch, int64_t hidden) {
  using V = Compute<T>;
  ForUnits(batch, hidden, 3, [&](int64_t unit, int64_t at) {
    const int64_t in_row = (3 * unit - at) / 2;
    V share[3];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      share[k] = Entry<V>(a.product, at + k * hidden) + Entry<V>(a.b, in_row + k * hidden);
    }
    const V reset = SigmoidV(Entry<T>(a.x, at) + share[0]);
    const V z = SigmoidV(Entry<T>(a.x, at + hidden) + share[1]);
    const V n = TanhV(Entry<T>(a.x, at + 2 * hidden) + reset * share[2]);
    const V before = a.state != nullptr ? Entry<V>(a.state, unit) : Entry<T>(a.h_before, unit);
    const V h = (1 - z) * n + z * before;
    Put<T>(a.gates, at, reset);
    Put<T>(a.gates, at + hidden, z);
    Put<T>(a.gates, at + 2 * hidden, n);
    Put<T>(a.share, unit, share[2]);
    Put<T>(a.h, unit, h);
    if (a.new_state != nullptr) Put<V>(a.new_state, unit, h);
  });
}

template <typename T>
__global__ void GruCellGradKernel(GruCellGradArrays a, int64_t batch, int64_t hidden) {
  using V = Compute<T>;
  ForUnits(batch, hidden, 3, [&](int64_t unit, int64_t at) {
    const V reset = Entry<T>(a.gates, at), z = Entry<T>(a.gates, at + hidden);
    const V n = Entry<T>(a.gates, at + 2 * hidden);
    const V e = Entry<V>(a.product, unit) + Entry<T>(a.dh, unit) + Entry<V>(a.kept, unit);
    const V dn = OfTanh(e * (1 - z), n);
    const V of_reset = OfSigmoid(dn * Entry<T>(a.share, unit), reset);
    const V of_z = OfSigmoid(e * (Entry<T>(a.h_before, unit) - n), z);
    Put<V>(a.new_kept, unit, e * z);
    Put<T>(a.dx, at, of_reset);
    Put<T>(a.dx, at + hidden, of_z);
    Put<T>(a.dx, at + 2 * hidden, dn);
    Put<T>(a.ds, at, of_reset);
    Put<T>(a.ds, at + hidden, of_z);
    Put<T>(a.ds, at + 2 * hidden, dn * reset);
  });
}

template <typename T>
__global__ void AddToProductKernel(const void* product, const void* more, bool more_is_wide,
                                   void* y, int64_t size) {
  using V = Compute<T>;
  ForUnits(1, size, 1, [&](int64_t i, int64_t) {
    const V other = more_is_wide ? Entry<V>(more, i) : Entry<T>(more, i);
    Put<T>(y, i, Entry<V>(product, i) + other);
  });
}

dim3 UnitGrid(int64_t rows, int64_t units) {
  constexpr int64_t kMost = 32768;
  const int64_t blocks = (units + kUnitThreads - 1) / kUnitThreads;
  return dim3(static_cast<unsigned>(blocks < kMost ? blocks : kMost),
              static_cast<unsigned>(rows < kMost ? rows : kMost));
}

}  // namespace

cudaError_t LaunchLstmCell(const RecurrenceParams& p, const LstmCellArrays& arrays,
                           cudaStream_t stream) {
  if (p.batch == 0) return cudaSuccess;
  return ForFloatType(p.dtype, [&](auto zero) {
    return LaunchKernel(LstmCellKernel<decltype(zero)>, UnitGrid(p.batch, p.hidden), kUnitThreads,
                        0, stream, arrays, p.batch, p.hidden);
  });
}

cudaError_t LaunchLstmCellGrad(const RecurrenceParams& p, const LstmCellGradArrays& arrays,
                               cudaStream_t stream) {
  if (p.batch == 0) return cudaSuccess;
  return ForFloatType(p.dtype, [&](auto zero) {
    return LaunchKernel(LstmCellGradKernel<decltype(zero)>, UnitGrid(p.batch, p.hidden),
                        kUnitThreads, 0, stream, arrays, p.batch, p.hidden);
  });
}

cudaError_t LaunchGruCell(const RecurrenceParams& p, const GruCellArrays& arrays,
                          cudaStream_t stream) {
  if (p.batch == 0) return cudaSuccess;
  return ForFloatType(p.dtype, [&](auto zero) {
    return LaunchKernel(GruCellKernel<decltype(zero)>, UnitGrid(p.batch, p.hidden), kUnitThreads, 0,
                        stream, arrays, p.batch, p.hidden);
  });
}

cudaError_t LaunchGruCellGrad(const RecurrenceParams& p, const GruCellGradArrays& arrays,
                              cudaStream_t stream) {
  if (p.batch == 0) return cudaSuccess;
  return ForFloatType(p.dtype, [&](auto zero) {
    return LaunchKernel(GruCellGradKernel<decltype(zero)>, UnitGrid(p.batch, p.hidden),
                        kUnitThreads, 0, stream, arrays, p.batch, p.hidden);
  });
}

cudaError_t LaunchAddToProduct(DType dtype, int64_t size, const void* product, const void* more,
                               bool more_is_wide, void* y, cudaStream_t stream) {
  if (size == 0) return cudaSuccess;
  return ForFloatType(dtype, [&](auto zero) {
    return LaunchKernel(AddToProductKernel<decltype(zero)>, UnitGrid(1, size), kUnitThreads, 0,
                        stream, product, more, more_is_wide, y, size);
  });
}

}  // namespace halftone::cuda
