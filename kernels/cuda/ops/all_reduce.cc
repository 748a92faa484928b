// all_reduce_start, all_reduce_wait, all_reduce.
//
// A mean is a sum of what each rank has divided by their number: a sum of f16 gradients that a loss scale
// has made large may be infinite where their mean is not.
#include "halftone/kernels/cuda/ops/all_reduce.h"

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "halftone/core/check.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/cuda/runtime/ranks.h"

namespace halftone::kernels {
namespace {

using cuda::Ranks;
using cuda::ReductionsUnderWay;

// Arrays one after the other in a buffer, the ranks' words of faults behind them.
class Packed {
 public:
  Packed(DType dtype, DType wire, int ranks) : dtype_(dtype), wire_(wire), ranks_(ranks) {}

  void Add(const ir::ValueType& type) {
    sizes_.push_back(type.num_elements());
    elements_ += sizes_.back();
  }
  // What is reduced.
  int64_t count() const {
    return ranks_ == 1 ? elements_ : elements_ + int64_t{ranks_} * cuda::kFaultElements;
  }
  DType wire() const { return wire_; }
  char* Words(void* buffer) const {
    return static_cast<char*>(buffer) + elements_ * static_cast<int64_t>(SizeOf(wire_));
  }

  absl::Status Pack(const void* const* arrays, void* buffer, int divisor,
                    cudaStream_t stream) const {
    return Convert(dtype_, wire_, divisor, stream, [&](size_t i, int64_t first) {
      return std::pair(arrays[i], static_cast<void*>(At(buffer, first)));
    });
  }
  absl::Status Unpack(void* buffer, void* const* arrays, cudaStream_t stream) const {
    return Convert(wire_, dtype_, 1, stream, [&](size_t i, int64_t first) {
      return std::pair(static_cast<const void*>(At(buffer, first)), arrays[i]);
    });
  }

 private:
  char* At(void* buffer, int64_t element) const {
    return static_cast<char*>(buffer) + element * static_cast<int64_t>(SizeOf(wire_));
  }

  // `ends(i, first)`: from and to where array i, `first` elements into the buffer, goes.
  template <typename Ends>
  absl::Status Convert(DType from, DType to, int divisor, cudaStream_t stream,
                       const Ends& ends) const {
    int64_t first = 0;
    for (size_t next = 0; next < sizes_.size();) {
      cuda::ConvertBatch batch{};
      for (; next < sizes_.size(); ++next) {
        const int i = batch.table.count;
        if (!batch.table.HasRoom(sizes_[next], batch.kChunk)) break;
        std::tie(batch.from[i], batch.to[i]) = ends(next, first);
        batch.size[i] = sizes_[next];
        batch.table.Add(sizes_[next], batch.kChunk);
        first += sizes_[next];
      }
      HT_CUDA_RETURN_IF_ERROR(LaunchConvert(batch, from, to, divisor, stream));
    }
    return absl::OkStatus();
  }

  const DType dtype_, wire_;
  const int ranks_;
  std::vector<int64_t> sizes_;
  int64_t elements_ = 0;
};

int RanksOf(const ir::Node& node) { return static_cast<int>(node.attrs().GetInt("ranks")); }

int DivisorOf(const ir::Node& node) {
  return node.attrs().GetString("reduction") == "mean" ? RanksOf(node) : 1;
}

// The devices that a node's step is made with; null: of one rank nothing is exchanged.
absl::StatusOr<std::shared_ptr<Ranks>> RanksFor(const ir::Node& node) {
  const int ranks = RanksOf(node);
  if (ranks == 1) return std::shared_ptr<Ranks>();
  std::shared_ptr<Ranks> joined = Ranks::OfCurrentDevice();
  const int size = joined == nullptr ? 1 : joined->size();
  if (ranks == size) return joined;
  return FailedPrecondition(node.Label(), ": a step of ", ranks, " ranks in a job of ", size,
                            "; expected to be run by mpirun -n ", ranks);
}

absl::StatusOr<cuda::UniqueEvent> NewDoneEvent() {
  cudaEvent_t event = nullptr;
  HT_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return cuda::UniqueEvent(event);
}

// What the three have in common.
class ExchangeKernel : public CudaKernel {
 protected:
  ExchangeKernel(std::shared_ptr<Ranks> ranks, DType dtype, DType wire)
      : ranks_(std::move(ranks)), packed_(dtype, wire, ranks_ == nullptr ? 1 : ranks_->size()) {}

  // The buffer is packed; `done` is recorded behind its sums.
  absl::Status Begin(const KernelArgs& args, void* buffer, cudaEvent_t done, cudaStream_t stream) {
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchTellFault(packed_.Words(buffer), packed_.wire(),
                                                  ranks_->rank(), ranks_->size(),
                                                  args.state->device, stream));
    return ranks_->AllReduce(buffer, packed_.count(), packed_.wire(), stream, done);
  }
  absl::Status End(const KernelArgs& args, void* buffer, cudaEvent_t done, cudaStream_t stream) {
    HT_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(stream, done, 0));
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchHearFault(packed_.Words(buffer), packed_.wire(),
                                                  ranks_->size(), ranks_->broken(), args.fault_id,
                                                  args.state->device, stream));
    return absl::OkStatus();
  }

  const std::shared_ptr<Ranks> ranks_;  // null: of one rank
  Packed packed_;
};

class StartKernel : public ExchangeKernel {
 public:
  StartKernel(const ir::Node& node, std::shared_ptr<Ranks> ranks, cuda::UniqueEvent done)
      : ExchangeKernel(std::move(ranks),
                       node.num_inputs() == 0 ? node.output_type().dtype : node.input_type(0).dtype,
                       node.output_type().dtype),
        divisor_(DivisorOf(node)),
        done_(std::move(done)) {
    for (const ir::Value& x : node.inputs()) packed_.Add(x.type());
    HT_CHECK(packed_.count() <= node.output_type().num_elements(),
             "the buffer of all_reduce_start has no room for the words of faults");
  }
  ~StartKernel() override { ReductionsUnderWay::OfProcess().Forget(done_.get()); }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    void* const buffer = args.outputs[0];
    HT_RETURN_IF_ERROR(packed_.Pack(args.inputs, buffer, divisor_, stream));
    if (ranks_ == nullptr) return absl::OkStatus();
    HT_RETURN_IF_ERROR(Begin(args, buffer, done_.get(), stream));
    ReductionsUnderWay::OfProcess().Begin(buffer, done_.get());
    return absl::OkStatus();
  }

 private:
  const int divisor_;
  const cuda::UniqueEvent done_;
};

class WaitKernel : public ExchangeKernel {
 public:
  WaitKernel(const ir::Node& node, std::shared_ptr<Ranks> ranks, cuda::UniqueEvent)
      : ExchangeKernel(
            std::move(ranks),
            node.num_outputs() == 0 ? node.input_type(0).dtype : node.output_type(0).dtype,
            node.input_type(0).dtype) {
    for (int i = 0; i < node.num_outputs(); ++i) packed_.Add(node.output_type(i));
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    void* const buffer = const_cast<void*>(args.inputs[0]);  // read alone
    if (ranks_ != nullptr) {
      cudaEvent_t const done = ReductionsUnderWay::OfProcess().End(buffer);
      if (done == nullptr) return FailedPrecondition("nothing was started");
      HT_RETURN_IF_ERROR(End(args, buffer, done, stream));
    }
    return packed_.Unpack(buffer, args.outputs, stream);
  }
};

class NowKernel : public ExchangeKernel {
 public:
  NowKernel(const ir::Node& node, std::shared_ptr<Ranks> ranks, cuda::UniqueEvent done)
      : ExchangeKernel(std::move(ranks), node.input_type(0).dtype, node.input_type(0).dtype),
        divisor_(DivisorOf(node)),
        done_(std::move(done)) {
    packed_.Add(node.input_type(0));
    workspace_bytes_ = static_cast<size_t>(packed_.count()) * SizeOf(packed_.wire());
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    void* const buffer = args.workspace;
    HT_RETURN_IF_ERROR(packed_.Pack(args.inputs, buffer, divisor_, stream));
    if (ranks_ != nullptr) {
      HT_RETURN_IF_ERROR(Begin(args, buffer, done_.get(), stream));
      HT_RETURN_IF_ERROR(End(args, buffer, done_.get(), stream));
    }
    return packed_.Unpack(buffer, args.outputs, stream);
  }

 private:
  const int divisor_;
  const cuda::UniqueEvent done_;
};

template <typename K>
void AddExchange(KernelRegistry& r, const std::string& op) {
  AddCudaCandidate(r, "native", op, ir::kFloats, nullptr,
                   [](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                     HT_ASSIGN_OR_RETURN(std::shared_ptr<Ranks> ranks, RanksFor(node));
                     HT_ASSIGN_OR_RETURN(cuda::UniqueEvent done, NewDoneEvent());
                     return std::unique_ptr<Kernel>(new K(node, std::move(ranks), std::move(done)));
                   });
}

}  // namespace

void Register_cuda_all_reduce(KernelRegistry& r) {
  AddExchange<StartKernel>(r, "all_reduce_start");
  AddExchange<WaitKernel>(r, "all_reduce_wait");
  AddExchange<NowKernel>(r, "all_reduce");
}

}  // namespace halftone::kernels
