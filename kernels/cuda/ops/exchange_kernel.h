// What the kernels that exchange with the devices of other ranks have in common: arrays in the buffer of an exchange,
// the other ranks, and word of their faults. all_reduce.cc and shards.cc are made of it.
//
// A mean is a sum of what each rank has divided by their number: a sum of f16 gradients that a loss scale
// has made large may be infinite where their mean is not.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "halftone/kernels/cuda/ops/all_reduce.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/cuda/runtime/ranks.h"

namespace halftone::kernels {

// Arrays of one dtype, each in its place in a buffer of another one or the same.
class PackedArrays {
 public:
  PackedArrays(DType dtype, DType wire) : dtype_(dtype), wire_(wire) {}

  // The next array lies `offset` elements from the front of the buffer.
  void Add(int64_t offset, int64_t elements) { places_.push_back({offset, elements}); }
  // Behind those before.
  void Add(int64_t elements) {
    Add(places_.empty() ? 0 : places_.back().offset + places_.back().elements, elements);
  }
  DType wire() const { return wire_; }
  char* At(void* buffer, int64_t element) const {
    return static_cast<char*>(buffer) + element * static_cast<int64_t>(SizeOf(wire_));
  }

  absl::Status Pack(const void* const* arrays, void* buffer, int divisor,
                    cudaStream_t stream) const {
    return Convert(dtype_, wire_, divisor, stream, [&](size_t i) {
      return std::pair(arrays[i], static_cast<void*>(At(buffer, places_[i].offset)));
    });
  }
  absl::Status Unpack(void* buffer, void* const* arrays, cudaStream_t stream) const {
    return Convert(wire_, dtype_, 1, stream, [&](size_t i) {
      return std::pair(static_cast<const void*>(At(buffer, places_[i].offset)), arrays[i]);
    });
  }

 private:
  struct Place {
    int64_t offset, elements;
  };

  // `ends(i)`: from and to where array i goes.
  template <typename Ends>
  absl::Status Convert(DType from, DType to, int divisor, cudaStream_t stream,
                       const Ends& ends) const {
    for (size_t next = 0; next < places_.size();) {
      cuda::ConvertBatch batch{};
      for (; next < places_.size(); ++next) {
        const int64_t size = places_[next].elements;
        const int i = batch.table.count;
        if (!batch.table.HasRoom(size, batch.kChunk)) break;
        std::tie(batch.from[i], batch.to[i]) = ends(next);
        batch.size[i] = size;
        batch.table.Add(size, batch.kChunk);
      }
      HT_CUDA_RETURN_IF_ERROR(LaunchConvert(batch, from, to, divisor, stream));
    }
    return absl::OkStatus();
  }

  const DType dtype_, wire_;
  std::vector<Place> places_;
};

inline int RanksOf(const ir::Node& node) { return static_cast<int>(node.attrs().GetInt("ranks")); }

inline int DivisorOf(const ir::Node& node) {
  return node.attrs().GetString("reduction") == "mean" ? RanksOf(node) : 1;
}

// The devices that a node's step is made with; null: of one rank nothing is exchanged. Errors:
// FailedPrecondition: a node for another number of ranks than this job has, or for another rank.
inline absl::StatusOr<std::shared_ptr<cuda::Ranks>> RanksFor(const ir::Node& node) {
  const int ranks = RanksOf(node);
  if (ranks == 1) return std::shared_ptr<cuda::Ranks>();
  std::shared_ptr<cuda::Ranks> joined = cuda::Ranks::OfCurrentDevice();
  const int size = joined == nullptr ? 1 : joined->size();
  if (ranks != size) {
    return FailedPrecondition(node.Label(), ": a step of ", ranks, " ranks in a job of ", size,
                              "; expected to be run by mpirun -n ", ranks);
  }
  if (node.attrs().Has("rank") && node.attrs().GetInt("rank") != joined->rank()) {
    return FailedPrecondition(node.Label(), ": the step of rank ", node.attrs().GetInt("rank"),
                              " on rank ", joined->rank(), "; expected its own");
  }
  return joined;
}

inline absl::StatusOr<cuda::UniqueEvent> NewDoneEvent() {
  cudaEvent_t event = nullptr;
  HT_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return cuda::UniqueEvent(event);
}

class ExchangeKernel : public CudaKernel {
 protected:
  ExchangeKernel(std::shared_ptr<cuda::Ranks> ranks, DType dtype, DType wire)
      : ranks_(std::move(ranks)), packed_(dtype, wire) {}

  // Elements of the words of all ranks' faults.
  int64_t num_words() const {
    return ranks_ == nullptr ? 0 : int64_t{ranks_->size()} * cuda::kFaultElements;
  }
  // Writes this rank's word where those of all are, which are then to be summed.
  absl::Status TellFault(const KernelArgs& args, void* words, cudaStream_t stream) {
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchTellFault(words, packed_.wire(), ranks_->rank(),
                                                  ranks_->size(), args.state->device, stream));
    return absl::OkStatus();
  }
  // Waits on the device for an exchange, and takes the fault of `num_ranks` words behind it.
  absl::Status End(const KernelArgs& args, const void* words, int num_ranks, cudaEvent_t done,
                   cudaStream_t stream) {
    HT_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(stream, done, 0));
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchHearFault(words, packed_.wire(), num_ranks,
                                                  ranks_->broken(), args.fault_id,
                                                  args.state->device, stream));
    return absl::OkStatus();
  }

  const std::shared_ptr<cuda::Ranks> ranks_;  // null: of one rank
  PackedArrays packed_;
};

template <typename K>
void AddExchange(KernelRegistry& r, const std::string& op) {
  AddCudaCandidate(r, "native", op, ir::kFloats, nullptr,
                   [](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                     HT_ASSIGN_OR_RETURN(std::shared_ptr<cuda::Ranks> ranks, RanksFor(node));
                     HT_ASSIGN_OR_RETURN(cuda::UniqueEvent done, NewDoneEvent());
                     return std::unique_ptr<Kernel>(new K(node, std::move(ranks), std::move(done)));
                   });
}

}  // namespace halftone::kernels
