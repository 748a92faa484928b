// Single kernels in IR text: what `kernels` and `device_kernels` time.
#pragma once

#include <memory>
#include <string>

#include "halftone/core/tensor.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::benchmarks {

// A graph whose last node is the one to time. `inputs`: the list of its inputs, "%a: T[8,4], %t: i64[8]";
// `nodes`: lines of text. T before a bracket is `dtype`. Errors: those of ir::Parse.
absl::StatusOr<std::unique_ptr<ir::Graph>> ParseKernelCase(const std::string& inputs,
                                                           const std::string& nodes, DType dtype);

// `count` values for input `port` of `node`, in its dtype, always the same: uniform in -0.5..0.5, from the
// fourth input on (statistics, averages of squares) in 0.5..1.5; indices in range; positions in windows at
// their centres. Single numbers (a learning rate) are small, a single bool (whether to update) is true, a
// single integer (the step) 1.
Tensor OperandValues(const ir::Node& node, int port, int64_t count);

}  // namespace halftone::benchmarks
