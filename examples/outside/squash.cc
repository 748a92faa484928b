#include "squash.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "halftone/core/threads.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/op.h"
#include "halftone/graph/nn/op.h"
#include "halftone/kernels/kernel.h"

namespace ir = halftone::ir;
namespace kernels = halftone::kernels;
namespace nn = halftone::nn;
using halftone::DType;

namespace outside {
namespace {

// All that Halftone knows about the operator. Passes ask the record: no other place names it.
ir::OpRecord Record() {
  ir::OpRecord op;
  op.name = "squash";
  op.doc = "y = x / (1 + |x|)";
  op.inputs = {{"x", {DType::kF32, DType::kBF16}, "any shape"}};
  op.outputs = {{"y", "like x"}};
  op.infer = [](const ir::InferContext& c) -> absl::StatusOr<std::vector<ir::ValueType>> {
    return std::vector<ir::ValueType>{c.inputs[0]};
  };
  // Under mixed precision it runs in 16 bit where its neighbours do.
  op.amp.f16 = ir::AmpClass::kInfer;
  op.amp.bf16 = ir::AmpClass::kInfer;
  op.amp.reason = "bounded by 1";
  op.layout.kind = ir::LayoutClass::kFollows;
  op.in_place = {{0, 0}};
  op.gradient = [](ir::GradContext& c) {
    const ir::Expr d = c.b.Op("abs", {c.in(0)}) + 1.0;
    c.set_dx(0, c.dy(0) / (d * d));
  };
  op.gradient_ops = {"abs", "add", "mul", "div"};
  // What it is on a device that has no kernel for it.
  op.decompose = [](ir::Builder& b, const std::vector<ir::Expr>& in, const ir::Attributes&) {
    return std::vector<ir::Expr>{in[0] / (b.Op("abs", {in[0]}) + 1.0)};
  };
  return op;
}

// Made for one node, whose shape and dtype it knows. T: float or BF16.
template <typename T>
class SquashKernel : public kernels::Kernel {
 public:
  explicit SquashKernel(int64_t size) : size_(size) {}
  void Run(const kernels::KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.inputs[0]);
    auto* y = static_cast<T*>(args.outputs[0]);
    halftone::ParallelFor(0, size_, 4096, [x, y](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const auto wide = static_cast<float>(x[i]);
        y[i] = T(wide / (1 + std::fabs(wide)));
      }
    });
  }

 private:
  int64_t size_;
};

kernels::KernelCandidate Candidate() {
  kernels::KernelCandidate candidate;
  candidate.name = "cpu:outside:squash";
  candidate.op = "squash";
  candidate.dtypes = {DType::kF32, DType::kBF16};
  candidate.supports = [](const ir::Node&) { return absl::OkStatus(); };
  candidate.create = [](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
    const ir::ValueType& type = node.output_type();
    if (type.dtype == DType::kF32) {
      return std::make_unique<SquashKernel<float>>(type.num_elements());
    }
    return std::make_unique<SquashKernel<halftone::BF16>>(type.num_elements());
  };
  return candidate;
}

}  // namespace

absl::Status RegisterSquash() {
  HT_RETURN_IF_ERROR(ir::RegisterOp(Record()));
  kernels::KernelRegistry::Global().Add(Candidate());
  return absl::OkStatus();
}

nn::Value squash(const nn::Value& x, nn::Loc loc) { return nn::Op("squash", {x}, {}, loc); }

}  // namespace outside
