#include "halftone/graph/ops/support/infer.h"

#include <algorithm>

namespace halftone::ops {
namespace {

int64_t NormalAxis(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

std::string RangeText(int rank) { return rank == 0 ? "no axis" : Concat(-rank, "..", rank - 1); }

// "f32[2] and f16[3]"
std::string TypesText(const ir::InferContext& ctx, absl::Span<const int> ports) {
  std::string text;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (i > 0) text += i + 1 == ports.size() ? " and " : ", ";
    text += ctx.inputs[ports[i]].ToString();
  }
  return text;
}

std::vector<int> AllPorts(const ir::InferContext& ctx) {
  std::vector<int> ports(ctx.inputs.size());
  for (size_t i = 0; i < ports.size(); ++i) ports[i] = static_cast<int>(i);
  return ports;
}

}  // namespace

Types OneType(DType dtype, Shape shape, ir::Layout layout) {
  return std::vector<ir::ValueType>{{dtype, std::move(shape), layout}};
}

absl::Status RequireSameDType(const ir::InferContext& ctx, absl::Span<const int> ports) {
  const std::vector<int> all = AllPorts(ctx);
  if (ports.empty()) ports = all;
  for (int port : ports) {
    if (ctx.inputs[port].dtype != ctx.inputs[ports[0]].dtype) {
      return OpError(ctx, "dtypes of ", TypesText(ctx, ports), " differ; expected one dtype");
    }
  }
  return absl::OkStatus();
}

ir::Layout FollowedLayout(const ir::InferContext& ctx, const Shape& result) {
  for (const ir::ValueType& type : ctx.inputs) {
    if (type.shape == result) return type.layout;
  }
  return ir::Layout::kPlain;
}

Types InferLikeFirst(const ir::InferContext& ctx) {
  return OneType(ctx.inputs[0].dtype, ctx.inputs[0].shape, ctx.inputs[0].layout);
}

Types InferSameTypes(const ir::InferContext& ctx) {
  HT_RETURN_IF_ERROR(RequireSameDType(ctx));
  for (const ir::ValueType& type : ctx.inputs) {
    if (type.shape != ctx.inputs[0].shape) {
      return OpError(ctx, "shapes of ", TypesText(ctx, AllPorts(ctx)),
                     " differ; expected one shape");
    }
  }
  return InferLikeFirst(ctx);
}

Types InferBroadcast(const ir::InferContext& ctx, std::optional<DType> result, int first_value) {
  std::vector<int> ports = AllPorts(ctx);
  ports.erase(ports.begin(), ports.begin() + first_value);
  HT_RETURN_IF_ERROR(RequireSameDType(ctx, ports));
  Shape shape = ctx.inputs[0].shape;
  for (size_t i = 1; i < ctx.inputs.size(); ++i) {
    absl::StatusOr<Shape> wider = BroadcastShapes(shape, ctx.inputs[i].shape);
    if (!wider.ok()) return Annotate(wider.status(), ctx.op + ": ");
    shape = *wider;
  }
  const ir::Layout layout = FollowedLayout(ctx, shape);
  return OneType(result.value_or(ctx.inputs[first_value].dtype), std::move(shape), layout);
}

absl::StatusOr<int> AxisOf(const ir::InferContext& ctx, const std::string& name,
                           const ir::ValueType& type) {
  const int64_t axis = ctx.attrs.GetInt(name);
  const int rank = type.shape.rank();
  if (axis < -rank || axis >= rank) {
    return OpError(ctx, name, " ", axis, " out of range for ", type, "; expected ",
                   RangeText(rank));
  }
  return static_cast<int>(NormalAxis(axis, rank));
}

absl::StatusOr<Axes> AxesOf(const ir::InferContext& ctx, const std::string& name,
                            const ir::ValueType& type) {
  const std::vector<int64_t>& axes = ctx.attrs.GetInts(name);
  const int rank = type.shape.rank();
  for (int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return OpError(ctx, "axis ", axis, " out of range for ", type, "; expected ",
                     RangeText(rank));
    }
  }
  std::vector<int64_t> sorted = axes;
  for (int64_t& axis : sorted) axis = NormalAxis(axis, rank);
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return OpError(ctx, "axis ", *twice, " of ", type, " is listed twice; expected each axis once");
  }
  return CheckedAxes(axes, rank);
}

absl::StatusOr<Shape> ShapeOf(const ir::InferContext& ctx, const std::string& name) {
  return MakeShape(ctx, ctx.attrs.GetInts(name));
}

absl::StatusOr<Shape> MakeShape(const ir::InferContext& ctx, absl::Span<const int64_t> dims) {
  absl::StatusOr<Shape> shape = Shape::Make(dims);
  if (!shape.ok()) return Annotate(shape.status(), ctx.op + ": ");
  return shape;
}

absl::StatusOr<DType> OutDType(const ir::InferContext& ctx, DType usual) {
  const std::string& out = ctx.attrs.GetString("out");
  if (out.empty()) return usual;
  if (out != "f32" || (usual != DType::kF32 && !IsLow(usual))) {
    return OpError(ctx, "out \"", out, "\" for ", Name(usual),
                   "; expected \"\", or \"f32\" where the dtype is f32, f16 or bf16");
  }
  return DType::kF32;
}

int CheckedAxis(int64_t axis, int rank) { return static_cast<int>(NormalAxis(axis, rank)); }

Axes CheckedAxes(const std::vector<int64_t>& axes, int rank) {
  Axes result;
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) result.push_back(i);
    return result;
  }
  for (int64_t axis : axes) result.push_back(CheckedAxis(axis, rank));
  std::sort(result.begin(), result.end());
  return result;
}

Shape ReducedShape(const Shape& shape, const Axes& axes, bool keepdim) {
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!reduced) dims.push_back(shape[i]);
    if (reduced && keepdim) dims.push_back(1);
  }
  return Shape(dims);
}

Axes BroadcastAxes(const Shape& from, const Shape& to) {
  Axes axes;
  const int lead = to.rank() - from.rank();
  for (int i = 0; i < to.rank(); ++i) {
    if (i < lead || from[i - lead] != to[i]) axes.push_back(i);
  }
  return axes;
}

std::vector<int64_t> ToInts(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

}  // namespace halftone::ops
