// What the records of the neural network, loss and optimizer ops share: checks with one wording,
// and costs.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {

using Ints = std::vector<int64_t>;

// The dtype of statistics, losses and other outputs that never go low: f64 for f64, else f32.
DType WideDType(DType x);

// Checks of inference. `name` is the input's name in the record; every message is
// "op: name is got; expected ...".
absl::Status CheckRank(const ir::InferContext& ctx, int port, const char* name, int min, int max);
absl::Status CheckType(const ir::InferContext& ctx, int port, const char* name, DType dtype,
                       const Shape& shape, const std::string& why);
absl::Status CheckSameDType(const ir::InferContext& ctx, int port, const char* name, int other,
                            const char* other_name);
// A bias of `channels` values: the dtype of x, or f32 beside a 16-bit x.
absl::Status CheckBias(const ir::InferContext& ctx, int port, DType x, int64_t channels);
// An attribute of exactly `size` integers, each in min..max.
absl::Status CheckInts(const ir::InferContext& ctx, const char* attr, size_t size, int64_t min,
                       int64_t max = kMaxElements);
absl::Status CheckChoice(const ir::InferContext& ctx, const char* attr,
                         const std::vector<std::string>& choices);
// `holds` says whether the attribute's value is acceptable; `expected` words the rule.
absl::Status CheckFloat(const ir::InferContext& ctx, const char* attr, bool holds,
                        const char* expected);
// The shape an attribute holds, checked for rank.
absl::StatusOr<Shape> ShapeAttr(const ir::InferContext& ctx, const char* attr, int rank);

// The value of an `out` attribute that takes an op of `from` to `to`: "" or "f32".
std::string WidenTo(DType from, DType to);
// "[2,3]", for messages.
std::string IntsText(const Ints& values);

// Bytes of all inputs and outputs.
double IoBytes(const ir::Node& node);

// 0..rank-1 without `axis`.
Ints AxesBut(int rank, int axis);

// 0..rank-1.
Ints AllAxes(int rank);

// Reductions over exactly the axes given: none gives x itself, unlike the attribute of the ops.
ir::Expr Sum(ir::Expr x, const Ints& axes, bool keepdim = false);
ir::Expr Mean(ir::Expr x, const Ints& axes, bool keepdim = false);
ir::Expr Max(ir::Expr x, const Ints& axes, bool keepdim);

}  // namespace halftone::ops
