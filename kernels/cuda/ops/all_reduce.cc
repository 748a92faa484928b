// all_reduce_start, all_reduce_wait, all_reduce.
#include "halftone/kernels/cuda/ops/all_reduce.h"

#include <memory>
#include <utility>

#include "halftone/core/check.h"
#include "halftone/kernels/cuda/ops/exchange_kernel.h"

namespace halftone::kernels {
namespace {

using cuda::Ranks;
using cuda::ReductionsUnderWay;

// Arrays one after the other in a buffer, the ranks' words of faults behind them.
class ReductionKernel : public ExchangeKernel {
 protected:
  using ExchangeKernel::ExchangeKernel;

  void Add(const ir::ValueType& type) {
    packed_.Add(type.num_elements());
    elements_ += type.num_elements();
  }
  // What is reduced.
  int64_t count() const { return elements_ + num_words(); }

  // The buffer is packed; `done` is recorded behind its sums.
  absl::Status Begin(const KernelArgs& args, void* buffer, cudaEvent_t done, cudaStream_t stream) {
    HT_RETURN_IF_ERROR(TellFault(args, Words(buffer), stream));
    return ranks_->AllReduce(buffer, count(), packed_.wire(), stream, done);
  }
  absl::Status EndOf(const KernelArgs& args, void* buffer, cudaEvent_t done, cudaStream_t stream) {
    return End(args, Words(buffer), ranks_->size(), done, stream);
  }

 private:
  void* Words(void* buffer) const { return packed_.At(buffer, elements_); }

  int64_t elements_ = 0;
};

class AllReduceStartKernel : public ReductionKernel {
 public:
  AllReduceStartKernel(const ir::Node& node, std::shared_ptr<Ranks> ranks, cuda::UniqueEvent done)
      : ReductionKernel(
            std::move(ranks),
            node.num_inputs() == 0 ? node.output_type().dtype : node.input_type(0).dtype,
            node.output_type().dtype),
        divisor_(DivisorOf(node)),
        done_(std::move(done)) {
    for (const ir::Value& x : node.inputs()) Add(x.type());
    HT_CHECK(count() <= node.output_type().num_elements(),
             "the buffer of all_reduce_start has no room for the words of faults");
  }
  ~AllReduceStartKernel() override { ReductionsUnderWay::OfProcess().Forget(done_.get()); }

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

class AllReduceWaitKernel : public ReductionKernel {
 public:
  AllReduceWaitKernel(const ir::Node& node, std::shared_ptr<Ranks> ranks, cuda::UniqueEvent)
      : ReductionKernel(
            std::move(ranks),
            node.num_outputs() == 0 ? node.input_type(0).dtype : node.output_type(0).dtype,
            node.input_type(0).dtype) {
    for (int i = 0; i < node.num_outputs(); ++i) Add(node.output_type(i));
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    void* const buffer = const_cast<void*>(args.inputs[0]);  // read alone
    if (ranks_ != nullptr) {
      HT_ASSIGN_OR_RETURN(cudaEvent_t const done, ReductionsUnderWay::OfProcess().End(buffer));
      HT_RETURN_IF_ERROR(EndOf(args, buffer, done, stream));
    }
    return packed_.Unpack(buffer, args.outputs, stream);
  }
};

class AllReduceNowKernel : public ReductionKernel {
 public:
  AllReduceNowKernel(const ir::Node& node, std::shared_ptr<Ranks> ranks, cuda::UniqueEvent done)
      : ReductionKernel(std::move(ranks), node.input_type(0).dtype, node.input_type(0).dtype),
        divisor_(DivisorOf(node)),
        done_(std::move(done)) {
    Add(node.input_type(0));
    workspace_bytes_ = static_cast<size_t>(count()) * SizeOf(packed_.wire());
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    void* const buffer = args.workspace;
    HT_RETURN_IF_ERROR(packed_.Pack(args.inputs, buffer, divisor_, stream));
    if (ranks_ != nullptr) {
      HT_RETURN_IF_ERROR(Begin(args, buffer, done_.get(), stream));
      HT_RETURN_IF_ERROR(EndOf(args, buffer, done_.get(), stream));
    }
    return packed_.Unpack(buffer, args.outputs, stream);
  }

 private:
  const int divisor_;
  const cuda::UniqueEvent done_;
};

}  // namespace

void Register_cuda_all_reduce(KernelRegistry& r) {
  AddExchange<AllReduceStartKernel>(r, "all_reduce_start");
  AddExchange<AllReduceWaitKernel>(r, "all_reduce_wait");
  AddExchange<AllReduceNowKernel>(r, "all_reduce");
}

}  // namespace halftone::kernels
