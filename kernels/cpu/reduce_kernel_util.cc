#include "halftone/graph/ops/infer_util.h"
#include "halftone/kernels/cpu/reduce_kernel.h"

namespace halftone::kernels {

std::vector<bool> ReducedAxesOf(const ir::Node& node) {
  const Shape& x = node.input_type(0).shape;
  ops::Axes axes;
  if (node.op().name == "conv2d_grad_bias") {
    axes = {0, 2, 3};
  } else if (node.op().name == "sum_to_shape") {
    axes = ops::BroadcastAxes(node.output_type().shape, x);
  } else {
    axes = ops::CheckedAxes(node.attrs().GetInts("axes"), x.rank());
  }
  std::vector<bool> is_reduced(x.rank(), false);
  for (int axis : axes) is_reduced[axis] = true;
  return is_reduced;
}

absl::Status ReducesInOrder(const ir::Node& node) {
  if (!ReducePlan::WritesInOrder(node.input_type(0), ReducedAxesOf(node), node.output_type())) {
    return Unimplemented("the layout of the result orders the kept axes otherwise");
  }
  return absl::OkStatus();
}

}  // namespace halftone::kernels
