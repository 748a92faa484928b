#include "halftone/kernels/all_reduce_kernel.h"

#include <vector>

#include "halftone/core/check.h"
#include "halftone/distributed/all_reduce.h"
#include "halftone/graph/ops/support/all_reduce.h"
#include "halftone/kernels/exchange_support.h"

namespace halftone::kernels {
namespace {

using distributed::AllReduce;
using distributed::Communicator;

// Gradients one after the other in a buffer.
struct Packing {
  struct Piece {
    int64_t first, count;
  };
  std::vector<Piece> pieces;
  DType dtype = DType::kF32, wire = DType::kF32;
  int64_t elements = 0;

  void Add(const ir::ValueType& type) {
    pieces.push_back({elements, type.num_elements()});
    elements += type.num_elements();
    dtype = type.dtype;
  }
  int64_t Offset(size_t i) const { return pieces[i].first * static_cast<int64_t>(SizeOf(wire)); }
};

class AllReduceStart : public Kernel {
 public:
  AllReduceStart(const ir::Node& node, Communicator* communicator) {
    packing_.wire = node.output_type().dtype;
    for (const ir::Value& x : node.inputs()) packing_.Add(x.type());
    if (communicator == nullptr) return;
    // Said in two layers that may not include each other; what differs would write behind the buffer.
    HT_CHECK(node.output_type().num_elements() ==
                 AllReduce::BufferElements(packing_.elements, communicator->size()),
             "the buffer of all_reduce_start has not the size that the reduction uses");
    const bool mean = node.attrs().GetString("reduction") == "mean";
    reduction_ = std::make_unique<AllReduce>(*communicator, packing_.wire, packing_.elements, mean);
  }

  void Run(const KernelArgs& args) override {
    auto* const buffer = static_cast<char*>(args.outputs[0]);
    const bool failed = args.state->failed_here;
    for (size_t i = 0; i < packing_.pieces.size() && !failed; ++i) {
      CopyAs(args.inputs[i], packing_.dtype, buffer + packing_.Offset(i), packing_.wire,
             packing_.pieces[i].count);
    }
    if (reduction_ != nullptr) reduction_->Start(buffer, failed);
  }

 private:
  Packing packing_;
  std::unique_ptr<AllReduce> reduction_;  // null: of one rank
};

class AllReduceWait : public Kernel {
 public:
  AllReduceWait(const ir::Node& node, Communicator* communicator) : communicator_(communicator) {
    packing_.wire = node.input_type(0).dtype;
    for (int i = 0; i < node.num_outputs(); ++i) packing_.Add(node.output_type(i));
  }

  void Run(const KernelArgs& args) override {
    if (communicator_ != nullptr) {
      distributed::Collective* const reduction = communicator_->Find(args.inputs[0]);
      bool failed = false;
      args.state->error = reduction == nullptr
                              ? FailedPrecondition("all_reduce_wait: nothing was started")
                              : reduction->Wait(&failed);
      if (!args.state->error.ok()) return;
      if (failed) args.state->failed_elsewhere = true;
      if (failed || args.state->failed_here) return;
    }
    const auto* const buffer = static_cast<const char*>(args.inputs[0]);
    for (size_t i = 0; i < packing_.pieces.size(); ++i) {
      CopyAs(buffer + packing_.Offset(i), packing_.wire, args.outputs[i], packing_.dtype,
             packing_.pieces[i].count);
    }
  }

 private:
  Packing packing_;
  Communicator* const communicator_;  // null: of one rank
};

class AllReduceNow : public Kernel {
 public:
  AllReduceNow(const ir::Node& node, Communicator* communicator)
      : dtype_(node.output_type().dtype), elements_(node.output_type().num_elements()) {
    if (communicator == nullptr) return;
    const bool mean = node.attrs().GetString("reduction") == "mean";
    reduction_ = std::make_unique<AllReduce>(*communicator, dtype_, elements_, mean);
    workspace_bytes_ =
        static_cast<size_t>(AllReduce::BufferElements(elements_, communicator->size())) *
        SizeOf(dtype_);
  }

  void Run(const KernelArgs& args) override {
    if (reduction_ == nullptr)
      return CopyAs(args.inputs[0], dtype_, args.outputs[0], dtype_, elements_);
    const bool failed_here = args.state->failed_here;
    if (!failed_here) CopyAs(args.inputs[0], dtype_, args.workspace, dtype_, elements_);
    reduction_->Start(args.workspace, failed_here);
    bool failed = false;
    args.state->error = reduction_->Wait(&failed);
    if (failed) args.state->failed_elsewhere = true;
    if (failed || failed_here || !args.state->error.ok()) return;
    CopyAs(args.workspace, dtype_, args.outputs[0], dtype_, elements_);
  }

 private:
  const DType dtype_;
  const int64_t elements_;
  std::unique_ptr<AllReduce> reduction_;  // null: of one rank
};

template <typename K>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const ir::Node& node) {
  HT_ASSIGN_OR_RETURN(Communicator* const communicator, CommunicatorFor(node));
  return std::unique_ptr<Kernel>(new K(node, communicator));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeAllReduceStart(const ir::Node& node) {
  return Make<AllReduceStart>(node);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAllReduceWait(const ir::Node& node) {
  return Make<AllReduceWait>(node);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAllReduce(const ir::Node& node) {
  return Make<AllReduceNow>(node);
}

}  // namespace halftone::kernels
