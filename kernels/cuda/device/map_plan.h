// The host's half of MapParams: axes, strides and the width of accesses, from a node.
#pragma once

#include <array>

#include "halftone/graph/ir/graph.h"
#include "halftone/kernels/cuda/device/map.h"
#include "halftone/kernels/cuda/device/strided_plan.h"
#include "halftone/kernels/kernel.h"

namespace halftone::cuda {

// Elements of an access to a target and operands of these axes (see CollapseAxes): 8, 4 or 1, at
// most 16 bytes of the largest element.
int AccessWidth(const std::vector<StridedAxis>& axes, int operands, size_t largest_element);

// Operand k is the node's input ports[k]. Without the arrays.
template <int N>
MapParams<N> PlanMap(const ir::Node& node, const std::array<int, N>& ports) {
  MapParams<N> params;
  const ir::ValueType& y = node.output_type();
  params.size = y.num_elements();
  params.y_dtype = y.dtype;
  std::vector<ir::ValueType> operands;
  size_t largest = SizeOf(y.dtype);
  for (int k = 0; k < N; ++k) {
    operands.push_back(node.input_type(ports[k]));
    params.x_dtypes[k] = operands.back().dtype;
    largest = std::max(largest, SizeOf(operands.back().dtype));
  }
  const std::vector<StridedAxis> axes = BroadcastAxes(y, operands);
  params.index = MakeIndex<N>(axes, /*first=*/1);
  params.width = AccessWidth(axes, N, largest);
  return params;
}

// With the arrays of a run.
template <int N>
MapParams<N> WithArrays(MapParams<N> params, const kernels::KernelArgs& args,
                        const std::array<int, N>& ports) {
  params.y = args.outputs[0];
  if (!Aligned16({params.y})) params.width = 1;
  for (int k = 0; k < N; ++k) {
    params.x[k] = args.inputs[ports[k]];
    if (!Aligned16({params.x[k]})) params.width = 1;
  }
  return params;
}

}  // namespace halftone::cuda
