// random_uniform random_normal bernoulli: a thread takes a group of 4 elements, whose words one
// Philox block gives. Shared bytes: none. Bound: integer arithmetic, of normal numbers f64. Bytes
// moved: y once, of bernoulli x too.
#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/philox.cuh"
#include "halftone/kernels/cuda/ops/random.h"
#include "halftone/kernels/normal_pair.h"

namespace halftone::cuda {
namespace {

constexpr int kRandomThreads = 256;

__device__ inline float UniformOf(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

template <typename T>
__global__ void __launch_bounds__(kRandomThreads)
    RandomKernel(RandomParams p, const T* x, T* y, const kernels::DeviceRunState* state) {
  using V = Compute<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kRandomThreads;
  for (int64_t group = static_cast<int64_t>(blockIdx.x) * kRandomThreads + threadIdx.x;
       group * 4 < p.size; group += step) {
    const PhiloxWords words = PhiloxBlock(p.seed, state->run_count, static_cast<uint64_t>(group));
    double z[4];
    if (p.kind == RandomKind::kNormal) {
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const auto pair = kernels::NormalPairOf(words.v[i], words.v[i + 1]);
        z[i] = pair.first;
        z[i + 1] = pair.second;
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) z[i] = UniformOf(words.v[i]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t at = group * 4 + i;
      if (at >= p.size) continue;
      if (p.kind == RandomKind::kBernoulli) {
        y[at] = Narrow<T>(z[i] < static_cast<double>(Widen(x[at])) ? V{1} : V{0});
      } else {
        y[at] = Narrow<T>(static_cast<V>(p.shift) + static_cast<V>(p.scale) * static_cast<V>(z[i]));
      }
    }
  }
}

}  // namespace

cudaError_t LaunchRandom(const RandomParams& p, const void* x, void* y,
                         const kernels::DeviceRunState* state, cudaStream_t stream) {
  const int64_t groups = (p.size + 3) / 4, blocks = (groups + kRandomThreads - 1) / kRandomThreads;
  const int64_t most = int64_t{1} << 24;
  const dim3 grid(static_cast<unsigned>(blocks < most ? blocks : most));
  return ForFloatType(p.dtype, [&](auto zero) {
    using T = decltype(zero);
    return LaunchKernel(RandomKernel<T>, grid, kRandomThreads, 0, stream, p,
                        static_cast<const T*>(x), static_cast<T*>(y), state);
  });
}

}  // namespace halftone::cuda
