// Elementwise: a thread takes an element, or a pack of 4 that it widens; blocks of 256 threads
// stride over the array. Shared bytes: none. Bound: memory. Bytes moved: each element read and
// written once; exchanged axes are written in order and read with a stride.
#include "halftone/kernels/cuda/device/library_operands.h"
#include "halftone/kernels/cuda/device/pack.cuh"

namespace halftone::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = int64_t{1} << 20;
constexpr int kWidenPack = 4;

__device__ int64_t FirstIndex() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + static_cast<int64_t>(threadIdx.x);
}
__device__ int64_t IndexStep() { return static_cast<int64_t>(gridDim.x) * kThreads; }

template <typename T>
__global__ void __launch_bounds__(kThreads)
    SwapFilterAxesKernel(const T* in, int64_t count, int64_t a, int64_t b, T* out) {
  for (int64_t i = FirstIndex(); i < count; i += IndexStep()) {
    const int64_t j = i % a, rest = i / a;  // out[outer][k][j]
    const int64_t k = rest % b, outer = rest / b;
    out[i] = in[(outer * a + j) * b + k];
  }
}

template <typename T, int kPack>
__global__ void __launch_bounds__(kThreads) WidenKernel(const T* in, int64_t count, float* out) {
  const int64_t packs = count / kPack;
  for (int64_t i = FirstIndex(); i < packs; i += IndexStep()) {
    float values[kPack];
    LoadPack<kPack>(in + i * kPack, values);
    StorePack<kPack>(values, out + i * kPack);
  }
  const int64_t rest = packs * kPack + FirstIndex();
  if (rest < count) out[rest] = Widen(in[rest]);
}

dim3 BlocksOfThreads(int64_t count) {
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  return dim3(static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks));
}

template <typename T>
cudaError_t LaunchSwap(const void* in, int64_t count, int64_t a, int64_t b, void* out,
                       cudaStream_t stream) {
  return LaunchKernel(SwapFilterAxesKernel<T>, BlocksOfThreads(count), kThreads, 0, stream,
                      static_cast<const T*>(in), count, a, b, static_cast<T*>(out));
}

template <typename T>
cudaError_t LaunchWidenOf(const void* in, int64_t count, float* out, cudaStream_t stream) {
  // A step may begin at any image, whatever the elements of one.
  const bool packs = reinterpret_cast<uintptr_t>(in) % (kWidenPack * sizeof(T)) == 0;
  const int64_t threads = packs ? (count + kWidenPack - 1) / kWidenPack : count;
  return LaunchKernel(packs ? WidenKernel<T, kWidenPack> : WidenKernel<T, 1>,
                      BlocksOfThreads(threads), kThreads, 0, stream, static_cast<const T*>(in),
                      count, out);
}

}  // namespace

cudaError_t LaunchSwapFilterAxes(const void* in, int64_t outer, int64_t a, int64_t b,
                                 int element_bytes, void* out, cudaStream_t stream) {
  const int64_t count = outer * a * b;
  if (count == 0) return cudaSuccess;
  return element_bytes == 2 ? LaunchSwap<uint16_t>(in, count, a, b, out, stream)
                            : LaunchSwap<uint32_t>(in, count, a, b, out, stream);
}

cudaError_t LaunchWiden(const void* in, DType from, int64_t count, float* out,
                        cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return from == DType::kF16 ? LaunchWidenOf<__half>(in, count, out, stream)
                             : LaunchWidenOf<__nv_bfloat16>(in, count, out, stream);
}

}  // namespace halftone::cuda
