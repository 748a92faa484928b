// Ops that only move values: relayout transpose broadcast_to slice slice_grad concat flip reshape.
// Any dtype, any layout that the types name.
#include "halftone/graph/ops/support/infer.h"
#include "halftone/kernels/cuda/runtime/copy_plan.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

using cuda::CopyView;
using Ints = std::vector<int64_t>;

Ints StrideInts(const ir::ValueType& type) {
  const auto strides = ir::StridesOf(type);
  return Ints(strides.begin(), strides.end());
}

// One view an input, moved after the output is cleared if it is to be.
class CopyKernel : public CudaKernel {
 public:
  CopyKernel(const ir::Node& node, const std::vector<CopyView>& views, bool clear)
      : clear_bytes_(clear ? node.output_type().num_bytes() : 0) {
    const int size = static_cast<int>(SizeOf(node.output_type().dtype));
    for (const CopyView& view : views) copies_.emplace_back(size, view);
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (clear_bytes_ > 0) {
      HT_CUDA_RETURN_IF_ERROR(
          cudaMemsetAsync(args.outputs[0], 0, static_cast<size_t>(clear_bytes_), stream));
    }
    for (size_t i = 0; i < copies_.size(); ++i) {
      if (args.inputs[i] == args.outputs[0]) continue;  // reshape in place
      HT_RETURN_IF_ERROR(copies_[i].Launch(args.inputs[i], args.outputs[0], stream));
    }
    return absl::OkStatus();
  }

 private:
  int64_t clear_bytes_;
  std::vector<cuda::StridedCopy> copies_;
};

CopyView ViewOfRelayout(const ir::Node& node) {
  const ir::ValueType& y = node.output_type();
  return {ops::ToInts(y.shape), StrideInts(node.input_type(0)), StrideInts(y)};
}

CopyView ViewOfReshape(const ir::Node& node) {
  return {{node.output_type().num_elements()}, {1}, {1}};
}

CopyView ViewOfTranspose(const ir::Node& node) {
  const ir::ValueType& y = node.output_type();
  const Ints own = StrideInts(node.input_type(0));
  Ints from;
  for (int64_t axis : node.attrs().GetInts("perm")) from.push_back(own[axis]);
  return {ops::ToInts(y.shape), from, StrideInts(y)};
}

CopyView ViewOfBroadcast(const ir::Node& node) {
  const ir::ValueType &x = node.input_type(0), &y = node.output_type();
  const Ints own = StrideInts(x);
  const int lead = y.shape.rank() - x.shape.rank();
  Ints from(y.shape.rank(), 0);
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (x.shape[i] != 1) from[lead + i] = own[i];
  }
  return {ops::ToInts(y.shape), from, StrideInts(y)};
}

// The strides and the offset of whole[starts::strides] in the storage of `whole`.
std::pair<Ints, int64_t> SliceOf(const ir::Node& node, const ir::ValueType& whole) {
  Ints strides = StrideInts(whole);
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += node.attrs().GetInts("starts")[i] * strides[i];
    strides[i] *= node.attrs().GetInts("strides")[i];
  }
  return {strides, offset};
}

CopyView ViewOfSlice(const ir::Node& node) {
  const ir::ValueType& y = node.output_type();
  const auto [from, offset] = SliceOf(node, node.input_type(0));
  return {ops::ToInts(y.shape), from, StrideInts(y), offset, 0};
}

CopyView ViewOfSliceGrad(const ir::Node& node) {
  const ir::ValueType& dy = node.input_type(0);
  const auto [to, offset] = SliceOf(node, node.output_type());
  return {ops::ToInts(dy.shape), StrideInts(dy), to, 0, offset};
}

CopyView ViewOfFlip(const ir::Node& node) {
  const ir::ValueType& y = node.output_type();
  CopyView view{ops::ToInts(y.shape), StrideInts(node.input_type(0)), StrideInts(y)};
  for (int axis : ops::CheckedAxes(node.attrs().GetInts("axes"), y.shape.rank())) {
    view.from_offset += std::max<int64_t>(0, y.shape[axis] - 1) * view.from_strides[axis];
    view.from_strides[axis] = -view.from_strides[axis];
  }
  return view;
}

std::vector<CopyView> ViewsOfConcat(const ir::Node& node) {
  const Ints to = StrideInts(node.output_type());
  const int axis = ops::CheckedAxis(node.attrs().GetInt("axis"), node.output_type().shape.rank());
  std::vector<CopyView> views;
  int64_t start = 0;
  for (const ir::Value& v : node.inputs()) {
    views.push_back({ops::ToInts(v.shape()), StrideInts(v.type()), to, 0, start * to[axis]});
    start += v.shape()[axis];
  }
  return views;
}

void AddCopy(KernelRegistry& r, const std::string& op, CopyView (*view)(const ir::Node&),
             std::function<absl::Status(const ir::Node&)> supports = nullptr) {
  AddCudaCandidate(r, "native", op, ir::kStorable, std::move(supports),
                   [=](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                     return std::make_unique<CopyKernel>(node, std::vector{view(node)},
                                                         /*clear=*/op == "slice_grad");
                   });
}

}  // namespace

void Register_cuda_copy(KernelRegistry& r) {
  AddCopy(r, "relayout", ViewOfRelayout);
  AddCopy(r, "reshape", ViewOfReshape, PlainThroughout);
  AddCopy(r, "detach", ViewOfReshape, PlainThroughout);
  AddCopy(r, "transpose", ViewOfTranspose);
  AddCopy(r, "broadcast_to", ViewOfBroadcast);
  AddCopy(r, "slice", ViewOfSlice);
  AddCopy(r, "slice_grad", ViewOfSliceGrad);
  AddCopy(r, "flip", ViewOfFlip);
  AddCudaCandidate(r, "native", "concat", ir::kAnyDType, nullptr,
                   [](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                     return std::make_unique<CopyKernel>(node, ViewsOfConcat(node),
                                                         /*clear=*/false);
                   });
}

}  // namespace halftone::kernels
