// One step on a device beside the same step on reference kernels, value by value.
#pragma once

#include <string>
#include <vector>

#include "halftone/tools/support/step.h"

namespace halftone::tools {

// The largest difference of an element, relative to the largest finite magnitude in `want` (or
// absolute, where that is 0). A NaN or infinity on one side only is an infinite error.
// Requires: equal dtypes and shapes.
double RelativeError(const Tensor& got, const Tensor& want);

// How a computed value differs.
struct ValueError {
  std::string value;  // "%h", "%h#1"
  std::string op;
  std::string type;
  std::string kernel;
  // End to end: both sides computed the value from the inputs and variables of the step.
  double error = 0;
  // The kernel's own: the reference kernel on what the device computed for the node's operands.
  double own_error = 0;
};

// What right results may differ by: in f32, and where values are 16-bit, whose roundings add up.
inline constexpr double kF32Tolerance = 1e-4, kLowTolerance = 3e-2;

struct Comparison {
  std::vector<ValueError> values;          // in the order of the step
  double usual_tolerance = kF32Tolerance;  // or kLowTolerance, if the step has 16-bit values
};

// Runs one step of `lowered` on `device` and on reference kernels, from the present values of
// `store`, which then hold those after the device's step. Every computed value is kept, so nothing
// is computed in place: kernels and their operands are otherwise those of an ordinary run. Errors:
// those of either run.
absl::StatusOr<Comparison> CompareWithReference(const ir::Graph& lowered, const Device& device,
                                                uint64_t seed, runtime::VariableStore& store,
                                                const std::vector<Tensor>& feeds,
                                                uint64_t run_count);

// The first value in the order of the step over the tolerance, end to end or by its kernel's own
// error; null if there is none. A value may be over it though every kernel is right: where rounding
// decides (the first step of Adam is the sign of the gradient) small differences become large ones.
const ValueError* FirstOver(const Comparison& comparison, double tolerance);
const ValueError* FirstKernelOver(const Comparison& comparison, double tolerance);

// The worst values first, at most `limit` of them; then what the two functions above find.
std::string ToTable(const Comparison& comparison, double tolerance, size_t limit);

}  // namespace halftone::tools
