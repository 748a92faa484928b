// reshape broadcast_to transpose slice slice_grad concat flip pad: elements move, their bits stay.

#include "halftone/graph/ops/support/padding.h"
#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

// y[i] = x[from(i)]
RefRun CopyBy(const IndexMap& from) {
  return [from](const RefCall& call) {
    for (int64_t i = 0; i < from.size(); ++i) call.Copy(0, from(i), 0, i);
  };
}

RefRun MakeReshape(RefNode& node) { return CopyBy(IndexMap::Broadcast(node.out(0), node.out(0))); }

RefRun MakeBroadcastTo(RefNode& node) {
  return CopyBy(IndexMap::Broadcast(node.in(0), node.out(0)));
}

RefRun MakeTranspose(RefNode& node) {
  const auto own = node.in(0).strides();
  absl::InlinedVector<int64_t, 4> strides;
  for (int64_t axis : node.attrs.GetInts("perm")) strides.push_back(own[axis]);
  return CopyBy(IndexMap(node.out(0).dims(), strides));
}

// From positions of the slice to elements of the whole.
IndexMap SliceMap(const RefNode& node, const Shape& whole, const Shape& slice) {
  auto strides = whole.strides();
  int64_t start = 0;
  for (int axis = 0; axis < whole.rank(); ++axis) {
    start += node.attrs.GetInts("starts")[axis] * strides[axis];
    strides[axis] *= node.attrs.GetInts("strides")[axis];
  }
  return IndexMap(slice.dims(), strides, start);
}

RefRun MakeSlice(RefNode& node) { return CopyBy(SliceMap(node, node.in(0), node.out(0))); }

RefRun MakeSliceGrad(RefNode& node) {
  const IndexMap to = SliceMap(node, node.out(0), node.in(0));
  return [to, size = node.out(0).num_elements()](const RefCall& call) {
    for (int64_t i = 0; i < size; ++i) call.StoreInt(0, i, 0);
    for (int64_t i = 0; i < to.size(); ++i) call.Copy(0, i, 0, to(i));
  };
}

RefRun MakeConcat(RefNode& node) {
  const Shape& out = node.out(0);
  const int axis = ops::CheckedAxis(node.attrs.GetInt("axis"), out.rank());
  std::vector<IndexMap> parts;
  int64_t start = 0;
  for (const ir::ValueType& part : node.inputs) {
    parts.emplace_back(part.shape.dims(), out.strides(), start * out.strides()[axis]);
    start += part.shape[axis];
  }
  return [parts](const RefCall& call) {
    for (size_t p = 0; p < parts.size(); ++p) {
      for (int64_t i = 0; i < parts[p].size(); ++i) {
        call.Copy(static_cast<int>(p), i, 0, parts[p](i));
      }
    }
  };
}

RefRun MakeFlip(RefNode& node) {
  const Shape& x = node.in(0);
  auto strides = x.strides();
  int64_t start = 0;
  for (int axis : ops::CheckedAxes(node.attrs.GetInts("axes"), x.rank())) {
    start += std::max<int64_t>(0, x[axis] - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  return CopyBy(IndexMap(x.dims(), strides, start));
}

RefRun MakePad(RefNode& node) {
  const ops::PadMode mode = ops::PadModeOf(node.attrs.GetString("mode"));
  const Shape x = node.in(0), y = node.out(0);
  const auto x_strides = x.strides(), y_strides = y.strides();
  const std::vector<int64_t> before = node.attrs.GetInts("before");
  const bool is_float = IsFloat(node.inputs[0].dtype);
  const double value = node.attrs.GetFloat("value");
  return [=](const RefCall& call) {
    for (int64_t i = 0; i < y.num_elements(); ++i) {
      int64_t from = 0, rest = i;
      for (int axis = 0; axis < y.rank() && from >= 0; ++axis) {
        const int64_t at = ops::PaddedFrom(mode, rest / y_strides[axis], before[axis], x[axis]);
        rest %= y_strides[axis];
        from = at < 0 ? -1 : from + at * x_strides[axis];
      }
      if (from >= 0) {
        call.Copy(0, from, 0, i);
      } else if (is_float) {
        call.Store(0, i, value);
      } else {
        call.StoreInt(0, i, static_cast<int64_t>(value));
      }
    }
  };
}

}  // namespace

void Register_reference_movement(KernelRegistry& r) {
  AddReference(r, "reshape", ir::kStorable, MakeReshape);
  AddReference(r, "detach", ir::kAnyDType, MakeReshape);
  AddReference(r, "broadcast_to", ir::kAnyDType, MakeBroadcastTo);
  AddReference(r, "transpose", ir::kAnyDType, MakeTranspose);
  AddReference(r, "slice", ir::kAnyDType, MakeSlice);
  AddReference(r, "slice_grad", ir::kAnyDType, MakeSliceGrad);
  AddReference(r, "concat", ir::kAnyDType, MakeConcat);
  AddReference(r, "flip", ir::kAnyDType, MakeFlip);
  AddReference(r, "pad", ir::kAnyDType, MakePad);
}

}  // namespace halftone::kernels
