// Sums as a ring makes them: each part of the elements begins with another rank's, and every addition
// rounds to the dtype. A caller that counts on an order or on f32 sums is found out.
#include "halftone/tests/cuda_emulation/nccl_reduction.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>

#include "halftone/tests/cuda_emulation/runtime.h"

namespace halftone::emulation {
namespace {

double ToDouble(double x) { return x; }
double ToDouble(float x) { return x; }
double ToDouble(__half x) { return __half2float(x); }
double ToDouble(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T>
T Add(T a, T b) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(__half2float(a) + __half2float(b));
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(__bfloat162float(a) + __bfloat162float(b));
  } else {
    return a + b;
  }
}

template <typename T>
void CombineAs(ncclComm& comm, const ReductionTerms& terms, void* to) {
  const auto size = static_cast<uint64_t>(comm.size);
  for (uint64_t i = 0; i < terms.count; ++i) {
    const uint64_t first = i * size / terms.count;
    T result{};
    for (uint64_t k = 0; k < size; ++k) {
      const char* const part = comm.memory->Part(static_cast<int>((first + k) % size));
      T x;
      std::memcpy(&x, part + i * sizeof(T), sizeof(T));
      if (k == 0) {
        result = x;
      } else if (terms.op == ncclSum) {
        result = Add(result, x);
      } else if (ToDouble(x) > ToDouble(result)) {
        result = x;
      }
    }
    std::memcpy(static_cast<char*>(to) + i * sizeof(T), &result, sizeof(T));
  }
}

}  // namespace

size_t SizeOf(ncclDataType_t dtype) {
  switch (dtype) {
    case ncclFloat64:
      return 8;
    case ncclFloat32:
      return 4;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    default:
      return 0;
  }
}

size_t Reduction::bytes() const {
  return terms_.count * SizeOf(static_cast<ncclDataType_t>(terms_.dtype));
}

std::string Reduction::Describe(int rank) const {
  const ReductionTerms& t = comm_->memory->job().ranks[rank].terms;
  const std::string root = std::to_string(t.root);
  const std::string what = t.collective == Collective::kBroadcast
                               ? " broadcasts from " + root + ": "
                           : t.collective == Collective::kReduce ? " reduces to " + root + ": "
                                                                 : " reduces ";
  return "rank " + std::to_string(rank) + what + std::to_string(t.count) + " elements of dtype " +
         std::to_string(t.dtype) + " by op " + std::to_string(t.op);
}

bool Reduction::WaitsFor(int rank, const char* what) const {
  GetRuntime().waits_for = "reduction " + std::to_string(number_) + " of rank " +
                           std::to_string(comm_->rank) + ": rank " + std::to_string(rank) + what;
  return false;
}

void Reduction::Combine() {
  if (!Gets(terms_, comm_->rank)) return;
  if (terms_.collective == Collective::kBroadcast) {
    std::memcpy(to_, comm_->memory->Part(terms_.root), bytes());
    return;
  }
  switch (terms_.dtype) {
    case ncclFloat64:
      return CombineAs<double>(*comm_, terms_, to_);
    case ncclFloat32:
      return CombineAs<float>(*comm_, terms_, to_);
    case ncclFloat16:
      return CombineAs<__half>(*comm_, terms_, to_);
    default:
      return CombineAs<__nv_bfloat16>(*comm_, terms_, to_);
  }
}

bool Reduction::Run() {
  Runtime& r = GetRuntime();
  const DeviceAccess access(r.memory);
  SharedJob& job = comm_->memory->job();
  SharedRank* const ranks = job.ranks;
  if (number_ == 0) number_ = ++comm_->reductions;
  if (job.aborted != 0) {
    if (Gets(terms_, comm_->rank)) std::memset(to_, 0xFF, bytes());  // ends at any place: of no use
    return true;
  }
  if (!written_) {
    for (int q = 0; q < comm_->size; ++q) {
      if (ranks[q].taken < number_ - 1) return WaitsFor(q, " has not taken the one before");
    }
    if (Gives(terms_, comm_->rank)) {
      std::memcpy(comm_->memory->Part(comm_->rank), from_, bytes());
    }
    ranks[comm_->rank].terms = terms_;
    ranks[comm_->rank].written = number_;
    written_ = true;
  }
  for (int q = 0; q < comm_->size; ++q) {
    if (ranks[q].written < number_) return WaitsFor(q, " has not come");
  }
  for (int q = 0; q < comm_->size; ++q) {
    if (ranks[q].terms == terms_) continue;
    // The real one hangs, or writes where it should not.
    r.FailDevice(
        comm_->device, cudaErrorLaunchFailure,
        "reduction " + std::to_string(number_) + ": " + Describe(comm_->rank) + ", " + Describe(q));
    ranks[comm_->rank].taken = number_;
    return true;
  }
  Combine();
  ranks[comm_->rank].taken = number_;
  return true;
}

}  // namespace halftone::emulation
