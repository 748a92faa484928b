// Conversion. Algorithm: each array is cut into chunks of 8,192 elements; a block of 256 threads converts
// a chunk, whose array it finds by bisection of the chunk table in the parameters.
// Accesses: a thread moves as many elements as are 16 bytes of the wider dtype where both ends are
// aligned, and one elsewhere and in the tail. Shared bytes: none. Bound: memory. Bytes moved: the minimum.
//
// Faults. One block; telling: a thread writes an element. Hearing: threads look for the lowest rank, one
// of them takes its fault. Shared bytes: 128. Bound: latency.
#include "halftone/kernels/cuda/device/float_types.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/reduce.cuh"
#include "halftone/kernels/cuda/ops/all_reduce.h"

namespace halftone::cuda {
namespace {

constexpr int kConvertThreads = 256;
constexpr int kDigits = 8;
constexpr int kDigitBits = 8;
static_assert(kFaultElements == 4 * kDigits);

// The type that both are computed in.
template <typename From, typename To>
using Between =
    std::conditional_t<std::is_same_v<From, double> || std::is_same_v<To, double>, double, float>;

template <int N, typename From, typename To>
__device__ void ConvertPack(const From* from, To* to, Between<From, To> divisor) {
  Compute<From> x[N];
  LoadPack(from, x);
  Between<From, To> y[N];
#pragma unroll
  for (int i = 0; i < N; ++i) y[i] = static_cast<Between<From, To>>(x[i]) / divisor;
  StorePack(y, to);
}

template <typename From, typename To>
__global__ void __launch_bounds__(kConvertThreads) ConvertKernel(ConvertBatch batch, int divisor) {
  const int i = ArrayOfChunk(batch.table, blockIdx.x);
  const int64_t begin = static_cast<int64_t>(blockIdx.x - batch.table.first[i]) * batch.kChunk;
  const int64_t rest = batch.size[i] - begin;
  const int64_t size = rest < batch.kChunk ? rest : batch.kChunk;
  const From* const from = static_cast<const From*>(batch.from[i]) + begin;
  To* const to = static_cast<To*>(batch.to[i]) + begin;
  const auto d = static_cast<Between<From, To>>(divisor);
  constexpr int kPack = kPackOf<From> < kPackOf<To> ? kPackOf<From> : kPackOf<To>;
  const bool aligned =
      (reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % 16 == 0;
  const int64_t packs = aligned ? size / kPack : 0;
  for (int64_t k = threadIdx.x; k < packs; k += kConvertThreads) {
    ConvertPack<kPack>(from + k * kPack, to + k * kPack, d);
  }
  for (int64_t k = packs * kPack + threadIdx.x; k < size; k += kConvertThreads) {
    ConvertPack<1>(from + k, to + k, d);
  }
}

constexpr int kFaultThreads = 128;

template <typename T>
__global__ void __launch_bounds__(kFaultThreads)
    TellFaultKernel(T* words, int rank, int ranks, const kernels::DeviceRunState* state) {
  const bool tells = state->fault_id != 0 && state->fault_rank == 0;
  const int64_t end = static_cast<int64_t>(ranks) * kFaultElements;
  for (int64_t i = threadIdx.x; i < end; i += kFaultThreads) {
    int digit = 0;
    if (tells && i / kFaultElements == rank) {
      const int in_word = static_cast<int>(i % kFaultElements);
      const int field = in_word / kDigits;
      const int64_t number = field == 0   ? state->fault_id
                             : field == 1 ? state->fault_value
                             : field == 2 ? state->fault_bound
                                          : state->fault_position;
      digit = static_cast<int>((static_cast<uint64_t>(number) >> (in_word % kDigits * kDigitBits)) &
                               ((1U << kDigitBits) - 1));
    }
    words[i] = Narrow<T>(static_cast<float>(digit));
  }
}

template <typename T>
__device__ int64_t NumberOf(const T* digits) {
  uint64_t number = 0;
  for (int i = 0; i < kDigits; ++i) {
    number |= static_cast<uint64_t>(Widen(digits[i])) << (i * kDigitBits);
  }
  return static_cast<int64_t>(number);
}

template <typename T>
__global__ void __launch_bounds__(kFaultThreads)
    HearFaultKernel(const T* words, int ranks, const int32_t* broken, int64_t fault_id,
                    kernels::DeviceRunState* state) {
  const bool is_broken = *broken != 0;
  int32_t lowest = INT32_MAX;
  // What lies there when reductions have no results is no number to decode.
  for (int r = threadIdx.x; r < ranks && !is_broken; r += kFaultThreads) {
    if (NumberOf(words + static_cast<int64_t>(r) * kFaultElements) != 0) lowest = Min()(lowest, r);
  }
  lowest = BlockReduce(lowest, Min(), INT32_MAX);
  if (threadIdx.x != 0 || state->fault_rank != 0) return;
  if (is_broken) {
    state->fault_id = fault_id;
    state->fault_rank = -1;
  } else if (lowest != INT32_MAX) {
    const T* const word = words + static_cast<int64_t>(lowest) * kFaultElements;
    state->fault_id = NumberOf(word);
    state->fault_value = NumberOf(word + kDigits);
    state->fault_bound = NumberOf(word + 2 * kDigits);
    state->fault_position = NumberOf(word + 3 * kDigits);
    state->fault_rank = lowest + 1;
  }
}

}  // namespace

cudaError_t LaunchConvert(const ConvertBatch& batch, DType from, DType to, int divisor,
                          cudaStream_t stream) {
  static_assert(sizeof(batch) + sizeof(divisor) <= 4096);
  if (batch.table.chunks() == 0) return cudaSuccess;
  return ForFloatType(from, [&](auto f) {
    return ForFloatType(to, [&](auto t) {
      return LaunchKernel(ConvertKernel<decltype(f), decltype(t)>, batch.table.chunks(),
                          kConvertThreads, 0, stream, batch, divisor);
    });
  });
}

cudaError_t LaunchTellFault(void* words, DType dtype, int rank, int ranks,
                            const kernels::DeviceRunState* state, cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto t) {
    using T = decltype(t);
    return LaunchKernel(TellFaultKernel<T>, 1, kFaultThreads, 0, stream, static_cast<T*>(words),
                        rank, ranks, state);
  });
}

cudaError_t LaunchHearFault(const void* words, DType dtype, int ranks, const int32_t* broken,
                            int64_t fault_id, kernels::DeviceRunState* state, cudaStream_t stream) {
  return ForFloatType(dtype, [&](auto t) {
    using T = decltype(t);
    return LaunchKernel(HearFaultKernel<T>, 1, kFaultThreads, 0, stream,
                        static_cast<const T*>(words), ranks, broken, fault_id, state);
  });
}

}  // namespace halftone::cuda
