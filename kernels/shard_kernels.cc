#include "halftone/kernels/shard_kernels.h"

#include <cstring>
#include <utility>
#include <vector>

#include "halftone/core/check.h"
#include "halftone/distributed/shards.h"
#include "halftone/graph/ops/support/shards.h"
#include "halftone/kernels/exchange_support.h"

namespace halftone::kernels {
namespace {

using distributed::AllGather;
using distributed::Communicator;
using distributed::ReduceScatter;

// Copies between a node's operands and their places in its buffer.
class Pieces {
 public:
  struct Piece {
    int64_t offset, elements;  // in the buffer
  };

  Pieces(const ops::ShardLayout& layout, const std::vector<size_t>& positions, DType buffer_dtype,
         DType dtype)
      : buffer_dtype_(buffer_dtype), dtype_(dtype) {
    for (const size_t i : positions) {
      pieces_.push_back({layout.pieces[i].offset, layout.pieces[i].shape.num_elements()});
    }
  }
  void Pack(const void* const* inputs, void* buffer) const {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      CopyAs(inputs[i], dtype_, Place(buffer, i), buffer_dtype_, pieces_[i].elements);
    }
  }
  void Unpack(const void* buffer, void* const* outputs) const {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const void* const from = Place(const_cast<void*>(buffer), i);
      CopyAs(from, buffer_dtype_, outputs[i], dtype_, pieces_[i].elements);
    }
  }

 private:
  char* Place(void* buffer, size_t i) const {
    return static_cast<char*>(buffer) +
           pieces_[i].offset * static_cast<int64_t>(SizeOf(buffer_dtype_));
  }

  std::vector<Piece> pieces_;
  DType buffer_dtype_, dtype_;
};

// Elements of a buffer that no piece has, and that are sent all the same.
class Gaps {
 public:
  Gaps(const ops::ShardLayout& layout, DType dtype) : bytes_(static_cast<int64_t>(SizeOf(dtype))) {
    int64_t end = 0;
    for (size_t r = 0; r < layout.parts.size(); ++r) {
      int64_t begin = end;
      for (const size_t i : layout.OwnedBy(static_cast<int64_t>(r))) {
        begin += layout.pieces[i].shape.num_elements();
      }
      end += layout.parts[r];
      gaps_.emplace_back(begin, end);
    }
  }
  void Clear(void* buffer) const {
    for (const auto& [begin, end] : gaps_) {
      std::memset(static_cast<char*>(buffer) + begin * bytes_, 0,
                  static_cast<size_t>((end - begin) * bytes_));
    }
  }

 private:
  const int64_t bytes_;
  std::vector<std::pair<int64_t, int64_t>> gaps_;  // in elements
};

std::vector<size_t> EveryPiece(const ops::ShardLayout& layout) {
  std::vector<size_t> positions(layout.pieces.size());
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = i;
  return positions;
}

ops::ShardLayout LayoutOf(const ir::Node& node) {
  return *ops::ShardLayout::Of(node.op().name, node.attrs());
}

int64_t RankOf(const ir::Node& node) { return node.attrs().GetInt("rank"); }

class ReduceScatterStart : public Kernel {
 public:
  ReduceScatterStart(const ir::Node& node, Communicator* communicator)
      : ReduceScatterStart(node, LayoutOf(node), communicator) {}

  void Run(const KernelArgs& args) override {
    const bool failed = args.state->failed_here;
    gaps_.Clear(args.outputs[0]);
    if (!failed) pieces_.Pack(args.inputs, args.outputs[0]);
    if (reduction_ != nullptr) reduction_->Start(args.outputs[0], failed);
  }

 private:
  ReduceScatterStart(const ir::Node& node, const ops::ShardLayout& layout,
                     Communicator* communicator)
      : pieces_(layout, EveryPiece(layout), node.output_type().dtype,
                node.num_inputs() == 0 ? node.output_type().dtype : node.input_type(0).dtype),
        gaps_(layout, node.output_type().dtype) {
    if (communicator == nullptr) return;
    // Said in two layers that may not include each other; what differs would write behind the buffer.
    HT_CHECK(node.output_type().num_elements() ==
                 ReduceScatter::BufferElements(layout.parts, communicator->rank()),
             "the buffer of reduce_scatter_start has not the size that the reduction uses");
    const bool mean = node.attrs().GetString("reduction") == "mean";
    reduction_ = std::make_unique<ReduceScatter>(*communicator, node.output_type().dtype,
                                                 layout.parts, mean);
  }

  const Pieces pieces_;
  const Gaps gaps_;
  std::unique_ptr<ReduceScatter> reduction_;  // null: of one rank
};

class AllGatherStart : public Kernel {
 public:
  AllGatherStart(const ir::Node& node, Communicator* communicator)
      : AllGatherStart(node, LayoutOf(node), communicator) {}

  void Run(const KernelArgs& args) override {
    gaps_.Clear(args.outputs[0]);
    pieces_.Pack(args.inputs, args.outputs[0]);
    if (gathering_ != nullptr) gathering_->Start(args.outputs[0]);
  }

 private:
  AllGatherStart(const ir::Node& node, const ops::ShardLayout& layout, Communicator* communicator)
      : pieces_(layout, layout.OwnedBy(RankOf(node)), node.output_type().dtype,
                node.output_type().dtype),
        gaps_(layout, node.output_type().dtype) {
    if (communicator == nullptr) return;
    gathering_ = std::make_unique<AllGather>(*communicator, node.output_type().dtype, layout.parts);
  }

  const Pieces pieces_;
  const Gaps gaps_;
  std::unique_ptr<AllGather> gathering_;  // null: of one rank
};

// The end of either exchange: its results out of the buffer.
class ShardsWait : public Kernel {
 public:
  ShardsWait(const ir::Node& node, std::vector<size_t> positions, Communicator* communicator)
      : pieces_(LayoutOf(node), positions, node.input_type(0).dtype,
                node.num_outputs() == 0 ? node.input_type(0).dtype : node.output_type().dtype),
        name_(node.op().name),
        communicator_(communicator) {}

  void Run(const KernelArgs& args) override {
    if (communicator_ != nullptr) {
      distributed::Collective* const exchange = communicator_->Find(args.inputs[0]);
      bool failed = false;
      args.state->error = exchange == nullptr ? FailedPrecondition(name_, ": nothing was started")
                                              : exchange->Wait(&failed);
      if (!args.state->error.ok()) return;
      if (failed) args.state->failed_elsewhere = true;
      if (failed || args.state->failed_here) return;
    }
    pieces_.Unpack(args.inputs[0], args.outputs);
  }

 private:
  const Pieces pieces_;
  const std::string name_;
  Communicator* const communicator_;  // null: of one rank
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeReduceScatterStart(const ir::Node& node) {
  HT_ASSIGN_OR_RETURN(Communicator* const communicator, CommunicatorFor(node));
  return std::unique_ptr<Kernel>(new ReduceScatterStart(node, communicator));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeReduceScatterWait(const ir::Node& node) {
  HT_ASSIGN_OR_RETURN(Communicator* const communicator, CommunicatorFor(node));
  std::vector<size_t> own = LayoutOf(node).OwnedBy(RankOf(node));
  return std::unique_ptr<Kernel>(new ShardsWait(node, std::move(own), communicator));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAllGatherStart(const ir::Node& node) {
  HT_ASSIGN_OR_RETURN(Communicator* const communicator, CommunicatorFor(node));
  return std::unique_ptr<Kernel>(new AllGatherStart(node, communicator));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAllGatherWait(const ir::Node& node) {
  HT_ASSIGN_OR_RETURN(Communicator* const communicator, CommunicatorFor(node));
  const std::vector<int64_t>& pieces = node.attrs().GetInts("pieces");
  return std::unique_ptr<Kernel>(
      new ShardsWait(node, std::vector<size_t>(pieces.begin(), pieces.end()), communicator));
}

}  // namespace halftone::kernels
