// transpose: axes in another order.

#include <algorithm>

#include "absl/strings/str_join.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

Types InferTranspose(const ir::InferContext& ctx) {
  const ir::ValueType& x = ctx.inputs[0];
  const std::vector<int64_t>& perm = ctx.attrs.GetInts("perm");
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool each_once = static_cast<int>(perm.size()) == x.shape.rank();
  for (size_t i = 0; each_once && i < sorted.size(); ++i) {
    each_once = sorted[i] == static_cast<int64_t>(i);
  }
  if (!each_once) {
    return OpError(ctx, "perm ", "[", absl::StrJoin(perm, ","), "]", " for ", x,
                   "; expected each axis 0..", x.shape.rank() - 1, " once");
  }
  std::vector<int64_t> dims;
  for (int64_t axis : perm) dims.push_back(x.shape[static_cast<int>(axis)]);
  return OneType(x.dtype, Shape(dims));
}

}  // namespace

void Register_transpose(ir::OpRegistry& r) {
  ir::OpRecord op;
  op.name = "transpose";
  op.doc =
      "y[i_perm[0], i_perm[1], ...] = x[i_0, i_1, ...]: axis k of y is axis perm[k] of x. "
      "Gradient: dy transposed by the inverse";
  op.source = "NumPy: transpose";
  op.inputs = {{"x", ir::kAnyDType, ""}};
  op.outputs = {{"y", ""}};
  op.attrs = {Required("perm", ir::AttrType::kInts, "each axis of x once")};
  op.amp = Clear("moves no value");
  op.cost = FlopsPerOutput(0);
  // Names no port: it reads and writes whatever layouts its types say.
  op.layout.kind = ir::LayoutClass::kChannelsLast;
  op.infer = InferTranspose;
  op.gradient = [](ir::GradContext& c) {
    const std::vector<int64_t>& perm = c.attrs().GetInts("perm");
    std::vector<int64_t> inverse(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<int64_t>(i);
    c.set_dx(0, c.b.Op("transpose", {c.dy(0)}, {{"perm", inverse}}));
  };
  op.gradient_ops = {"transpose"};
  AddOp(r, std::move(op));
}

}  // namespace halftone::ops
