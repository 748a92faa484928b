// Shape and dtype inference that many ops share. Messages read "op: value, got; expected".
#pragma once

#include <string>
#include <vector>

#include "halftone/core/strings.h"
#include "halftone/graph/ir/op.h"

namespace halftone::ops {

using Types = absl::StatusOr<std::vector<ir::ValueType>>;
using Axes = absl::InlinedVector<int, 8>;

template <typename... Parts>
absl::Status OpError(const ir::InferContext& ctx, const Parts&... parts) {
  return InvalidArgument(ctx.op, ": ", parts...);
}

// One output of this type.
Types OneType(DType dtype, Shape shape, ir::Layout layout = ir::Layout::kPlain);

// All the listed ports (every port if the list is empty) have the dtype of the first.
absl::Status RequireSameDType(const ir::InferContext& ctx, absl::Span<const int> ports = {});

// Layout of an elementwise result: that of the first operand of the result's shape, else plain.
ir::Layout FollowedLayout(const ir::InferContext& ctx, const Shape& result);

// The type of input 0.
Types InferLikeFirst(const ir::InferContext& ctx);
// Input 0's type, all inputs of equal dtype and shape: activation gradients.
Types InferSameTypes(const ir::InferContext& ctx);
// NumPy's broadcasting over all inputs. The first gives the dtype of the result, except that
// `result` overrides it; ports below `first_value` (a condition) may have any dtype.
Types InferBroadcast(const ir::InferContext& ctx, std::optional<DType> result = std::nullopt,
                     int first_value = 0);

// Attribute `name` as an axis of a tensor of `type`, in [0, rank).
absl::StatusOr<int> AxisOf(const ir::InferContext& ctx, const std::string& name,
                           const ir::ValueType& type);
// Attribute `name` as a set of axes of `type`: ascending; an empty list means all.
absl::StatusOr<Axes> AxesOf(const ir::InferContext& ctx, const std::string& name,
                            const ir::ValueType& type);
// A shape from extents that may be too many or too large; and from attribute `name`.
absl::StatusOr<Shape> MakeShape(const ir::InferContext& ctx, absl::Span<const int64_t> dims);
absl::StatusOr<Shape> ShapeOf(const ir::InferContext& ctx, const std::string& name);
// Attribute `out`, the absorbed cast: "" gives `usual`, "f32" gives f32 where `usual` is f32, f16
// or bf16.
absl::StatusOr<DType> OutDType(const ir::InferContext& ctx, DType usual);

// The same for kernels and formulas, where inference has succeeded before.
int CheckedAxis(int64_t axis, int rank);
Axes CheckedAxes(const std::vector<int64_t>& axes, int rank);
// `shape` with the extents of `axes` removed, or 1 where `keepdim`.
Shape ReducedShape(const Shape& shape, const Axes& axes, bool keepdim);
// Axes over which `from` repeats to become `to`, in terms of `to`.
Axes BroadcastAxes(const Shape& from, const Shape& to);

std::vector<int64_t> ToInts(const Shape& shape);

}  // namespace halftone::ops
