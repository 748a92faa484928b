// reduce_scatter_start reduce_scatter_wait all_gather_start all_gather_wait: as all_reduce, but each rank's part of
// the buffer is summed for that rank, or sent from it. Only what gradients and parameters take of a part travels; the
// words of faults lie behind all parts, where the host receives.
#include "halftone/graph/ops/support/shards.h"

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "halftone/core/check.h"
#include "halftone/kernels/cuda/ops/exchange_kernel.h"

namespace halftone::kernels {
namespace {

using cuda::Ranks;
using cuda::ReductionsUnderWay;
using ops::ShardLayout;

ShardLayout LayoutOf(const ir::Node& node) {
  return *ShardLayout::Of(node.op().name, node.attrs());
}

std::vector<size_t> AllPieces(const ShardLayout& layout) {
  std::vector<size_t> positions(layout.pieces.size());
  std::iota(positions.begin(), positions.end(), size_t{0});
  return positions;
}

std::vector<size_t> OwnPieces(const ir::Node& node, const ShardLayout& layout) {
  return layout.OwnedBy(node.attrs().GetInt("rank"));
}

// What pieces take of the part of each rank.
std::vector<cuda::RankPart> PartsOf(const ShardLayout& layout) {
  std::vector<cuda::RankPart> parts;
  int64_t begin = 0;
  for (size_t r = 0; r < layout.parts.size(); ++r) {
    int64_t count = 0;
    for (const size_t i : layout.OwnedBy(static_cast<int64_t>(r))) {
      count += layout.pieces[i].shape.num_elements();
    }
    parts.push_back({begin, count});
    begin += layout.parts[r];
  }
  return parts;
}

class ShardKernel : public ExchangeKernel {
 protected:
  // Of the pieces at `positions`.
  ShardKernel(std::shared_ptr<Ranks> ranks, const ShardLayout& layout,
              const std::vector<size_t>& positions, DType dtype, DType wire)
      : ExchangeKernel(std::move(ranks), dtype, wire), words_at_(layout.elements()) {
    for (const size_t i : positions) {
      packed_.Add(layout.pieces[i].offset, layout.pieces[i].shape.num_elements());
      used_ += layout.pieces[i].shape.num_elements();
    }
  }
  void* Words(void* buffer) const { return packed_.At(buffer, words_at_); }
  // Of one rank a buffer is whole, with zeros in the place of what rounds its part up. Of several nobody reads
  // that.
  absl::Status ClearGap(void* buffer, cudaStream_t stream) const {
    const auto bytes = static_cast<size_t>(words_at_ - used_) * SizeOf(packed_.wire());
    HT_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(packed_.At(buffer, used_), 0, bytes, stream));
    return absl::OkStatus();
  }

  const int64_t words_at_;
  int64_t used_ = 0;  // by pieces
};

class ReduceScatterStartKernel : public ShardKernel {
 public:
  ReduceScatterStartKernel(const ir::Node& node, std::shared_ptr<Ranks> ranks,
                           cuda::UniqueEvent done)
      : ReduceScatterStartKernel(node, LayoutOf(node), std::move(ranks), std::move(done)) {}
  ~ReduceScatterStartKernel() override { ReductionsUnderWay::OfProcess().Forget(done_.get()); }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    void* const buffer = args.outputs[0];
    HT_RETURN_IF_ERROR(packed_.Pack(args.inputs, buffer, divisor_, stream));
    if (ranks_ == nullptr) return ClearGap(buffer, stream);
    HT_RETURN_IF_ERROR(TellFault(args, Words(buffer), stream));
    const cuda::RankPart words = {words_at_, num_words()};
    HT_RETURN_IF_ERROR(
        ranks_->ReduceScatter(buffer, parts_, words, packed_.wire(), stream, done_.get()));
    ReductionsUnderWay::OfProcess().Begin(buffer, done_.get());
    return absl::OkStatus();
  }

 private:
  ReduceScatterStartKernel(const ir::Node& node, const ShardLayout& layout,
                           std::shared_ptr<Ranks> ranks, cuda::UniqueEvent done)
      : ShardKernel(std::move(ranks), layout, AllPieces(layout),
                    node.num_inputs() == 0 ? node.output_type().dtype : node.input_type(0).dtype,
                    node.output_type().dtype),
        parts_(PartsOf(layout)),
        divisor_(DivisorOf(node)),
        done_(std::move(done)) {
    HT_CHECK(words_at_ + num_words() <= node.output_type().num_elements(),
             "the buffer of reduce_scatter_start has no room for the words of faults");
  }

  const std::vector<cuda::RankPart> parts_;
  const int divisor_;
  const cuda::UniqueEvent done_;
};

class AllGatherStartKernel : public ShardKernel {
 public:
  AllGatherStartKernel(const ir::Node& node, std::shared_ptr<Ranks> ranks, cuda::UniqueEvent done)
      : AllGatherStartKernel(node, LayoutOf(node), std::move(ranks), std::move(done)) {}
  ~AllGatherStartKernel() override { ReductionsUnderWay::OfProcess().Forget(done_.get()); }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    void* const buffer = args.outputs[0];
    HT_RETURN_IF_ERROR(packed_.Pack(args.inputs, buffer, 1, stream));
    if (ranks_ == nullptr) return ClearGap(buffer, stream);
    HT_RETURN_IF_ERROR(ranks_->AllGather(buffer, parts_, packed_.wire(), stream, done_.get()));
    ReductionsUnderWay::OfProcess().Begin(buffer, done_.get());
    return absl::OkStatus();
  }

 private:
  AllGatherStartKernel(const ir::Node& node, const ShardLayout& layout,
                       std::shared_ptr<Ranks> ranks, cuda::UniqueEvent done)
      : ShardKernel(std::move(ranks), layout, OwnPieces(node, layout), node.output_type().dtype,
                    node.output_type().dtype),
        parts_(PartsOf(layout)),
        done_(std::move(done)) {}

  const std::vector<cuda::RankPart> parts_;
  const cuda::UniqueEvent done_;
};

// The end of either exchange.
class ShardsWaitKernel : public ShardKernel {
 public:
  // `words`: whether ranks have told of their faults.
  ShardsWaitKernel(const ir::Node& node, std::shared_ptr<Ranks> ranks, const ShardLayout& layout,
                   const std::vector<size_t>& positions, bool words)
      : ShardKernel(std::move(ranks), layout, positions,
                    node.num_outputs() == 0 ? node.input_type(0).dtype : node.output_type(0).dtype,
                    node.input_type(0).dtype),
        heard_(words && ranks_ != nullptr ? ranks_->size() : 0) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    void* const buffer = const_cast<void*>(args.inputs[0]);  // read alone
    if (ranks_ != nullptr) {
      HT_ASSIGN_OR_RETURN(cudaEvent_t const done, ReductionsUnderWay::OfProcess().End(buffer));
      HT_RETURN_IF_ERROR(End(args, Words(buffer), heard_, done, stream));
    }
    return packed_.Unpack(buffer, args.outputs, stream);
  }

 private:
  const int heard_;  // the ranks that have told
};

class ReduceScatterWaitKernel : public ShardsWaitKernel {
 public:
  ReduceScatterWaitKernel(const ir::Node& node, std::shared_ptr<Ranks> ranks, cuda::UniqueEvent)
      : ShardsWaitKernel(node, std::move(ranks), LayoutOf(node), OwnPieces(node, LayoutOf(node)),
                         /*words=*/true) {}
};

class AllGatherWaitKernel : public ShardsWaitKernel {
 public:
  AllGatherWaitKernel(const ir::Node& node, std::shared_ptr<Ranks> ranks, cuda::UniqueEvent)
      : ShardsWaitKernel(node, std::move(ranks), LayoutOf(node), Asked(node), /*words=*/false) {}

 private:
  static std::vector<size_t> Asked(const ir::Node& node) {
    const std::vector<int64_t>& pieces = node.attrs().GetInts("pieces");
    return {pieces.begin(), pieces.end()};
  }
};

}  // namespace

void Register_cuda_shards(KernelRegistry& r) {
  AddExchange<ReduceScatterStartKernel>(r, "reduce_scatter_start");
  AddExchange<ReduceScatterWaitKernel>(r, "reduce_scatter_wait");
  AddExchange<AllGatherStartKernel>(r, "all_gather_start");
  AddExchange<AllGatherWaitKernel>(r, "all_gather_wait");
}

}  // namespace halftone::kernels
