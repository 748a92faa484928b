// Ops that only move values, by the size of an element: relayout transpose broadcast_to slice
// slice_grad concat flip reshape. Any dtype; any layout where the types name one, except reshape.
#include <cstring>

#include "halftone/core/threads.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/strided_copy.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

using Strides = absl::InlinedVector<int64_t, 4>;

constexpr int64_t kByteGrain = 65536;

// What one input contributes.
struct CopyPlan {
  Shape dims;
  Strides from, to;
  int64_t from_offset = 0, to_offset = 0;
};

class CopyKernel : public Kernel {
 public:
  CopyKernel(const ir::Node& node, const std::vector<CopyPlan>& plans, bool clear)
      : clear_bytes_(clear ? node.output_type().num_bytes() : 0) {
    const size_t size = SizeOf(node.output_type().dtype);
    for (const CopyPlan& p : plans) {
      copies_.emplace_back(size, p.dims.dims(), p.from, p.to, p.from_offset, p.to_offset);
    }
  }
  void Run(const KernelArgs& args) override {
    ParallelFor(0, clear_bytes_, kByteGrain, [&](int64_t begin, int64_t end) {
      std::memset(static_cast<char*>(args.outputs[0]) + begin, 0, end - begin);
    });
    for (size_t i = 0; i < copies_.size(); ++i) copies_[i].Run(args.inputs[i], args.outputs[0]);
  }

 private:
  int64_t clear_bytes_;
  std::vector<StridedCopy> copies_;
};

CopyPlan PlanRelayout(const ir::Node& node) {
  const ir::ValueType &x = node.input_type(0), &y = node.output_type();
  if (x.layout == ir::Layout::kChannelBlocks || y.layout == ir::Layout::kChannelBlocks) {
    const ir::StridedAxes from = ir::BlockAxesOf(x), to = ir::BlockAxesOf(y);
    return {Shape(from.extents), from.strides, to.strides};
  }
  return {y.shape, ir::StridesOf(x), ir::StridesOf(y)};
}

CopyPlan PlanTranspose(const ir::Node& node) {
  const Strides own = ir::StridesOf(node.input_type(0));
  Strides from;
  for (int64_t axis : node.attrs().GetInts("perm")) from.push_back(own[axis]);
  return {node.output_type().shape, from, ir::StridesOf(node.output_type())};
}

CopyPlan PlanBroadcast(const ir::Node& node) {
  const ir::ValueType& x = node.input_type(0);
  const Shape& shape = node.output_type().shape;
  const Strides own = ir::StridesOf(x);
  const int lead = shape.rank() - x.shape.rank();
  Strides from(shape.rank(), 0);
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (x.shape[i] != 1) from[lead + i] = own[i];
  }
  return {shape, from, ir::StridesOf(node.output_type())};
}

// The strides and the offset of whole[starts::strides] in the storage of `whole`.
std::pair<Strides, int64_t> SliceOf(const ir::Node& node, const ir::ValueType& whole) {
  Strides strides = ir::StridesOf(whole);
  int64_t offset = 0;
  for (int i = 0; i < whole.shape.rank(); ++i) {
    offset += node.attrs().GetInts("starts")[i] * strides[i];
    strides[i] *= node.attrs().GetInts("strides")[i];
  }
  return {strides, offset};
}

CopyPlan PlanSlice(const ir::Node& node) {
  const auto [from, offset] = SliceOf(node, node.input_type(0));
  return {node.output_type().shape, from, ir::StridesOf(node.output_type()), offset, 0};
}

CopyPlan PlanSliceGrad(const ir::Node& node) {
  const auto [to, offset] = SliceOf(node, node.output_type());
  return {node.input_type(0).shape, ir::StridesOf(node.input_type(0)), to, 0, offset};
}

CopyPlan PlanFlip(const ir::Node& node) {
  const Shape& shape = node.output_type().shape;
  CopyPlan plan{shape, ir::StridesOf(node.input_type(0)), ir::StridesOf(node.output_type())};
  for (int axis : ops::CheckedAxes(node.attrs().GetInts("axes"), shape.rank())) {
    plan.from_offset += std::max<int64_t>(0, shape[axis] - 1) * plan.from[axis];
    plan.from[axis] = -plan.from[axis];
  }
  return plan;
}

std::vector<CopyPlan> PlanConcat(const ir::Node& node) {
  const Strides to = ir::StridesOf(node.output_type());
  const int axis = ops::CheckedAxis(node.attrs().GetInt("axis"), node.output_type().shape.rank());
  std::vector<CopyPlan> plans;
  int64_t start = 0;
  for (const ir::Value& v : node.inputs()) {
    plans.push_back({v.shape(), ir::StridesOf(v.type()), to, 0, start * to[axis]});
    start += v.shape()[axis];
  }
  return plans;
}

void AddCopy(KernelRegistry& r, const std::string& op, CopyPlan (*plan)(const ir::Node&),
             bool clear = false) {
  AddNativeCandidate(r, "copy", op, ir::kAnyDType, nullptr,
                     [=](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                       return std::make_unique<CopyKernel>(node, std::vector{plan(node)}, clear);
                     });
}

// The memory plan may give x and y the same place.
class ReshapeKernel : public Kernel {
 public:
  explicit ReshapeKernel(const ir::Node& node) : bytes_(node.output_type().num_bytes()) {}
  void Run(const KernelArgs& args) override {
    if (args.inputs[0] == args.outputs[0]) return;
    ParallelFor(0, bytes_, kByteGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char*>(args.outputs[0]) + begin,
                  static_cast<const char*>(args.inputs[0]) + begin, end - begin);
    });
  }

 private:
  int64_t bytes_;
};

}  // namespace

void Register_cpu_copy(KernelRegistry& r) {
  AddCopy(r, "relayout", PlanRelayout);
  AddCopy(r, "transpose", PlanTranspose);
  AddCopy(r, "broadcast_to", PlanBroadcast);
  AddCopy(r, "slice", PlanSlice);
  AddCopy(r, "slice_grad", PlanSliceGrad, /*clear=*/true);
  AddCopy(r, "flip", PlanFlip);
  AddNativeCandidate(r, "copy", "concat", ir::kAnyDType, nullptr,
                     [](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                       return std::make_unique<CopyKernel>(node, PlanConcat(node), false);
                     });
  for (const char* op : {"reshape", "detach"}) {
    AddNativeCandidate<ReshapeKernel>(r, "copy", op, ir::kStorable, PlainThroughout);
  }
}

}  // namespace halftone::kernels
