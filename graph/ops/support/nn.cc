#include "halftone/graph/ops/support/nn.h"

#include "halftone/core/check.h"

namespace halftone::ops {

using ir::Attributes;
using ir::Expr;
using ir::InferContext;

DType WideDType(DType x) { return x == DType::kF64 ? DType::kF64 : DType::kF32; }

absl::Status CheckRank(const InferContext& ctx, int port, const char* name, int min, int max) {
  const int rank = ctx.inputs[port].shape.rank();
  if (rank >= min && rank <= max) return absl::OkStatus();
  const std::string expected = min == max        ? Concat("rank ", min)
                               : max == kMaxRank ? Concat("rank ", min, " or more")
                                                 : Concat("rank ", min, "..", max);
  return InvalidArgument(ctx.op, ": ", name, " is ", ctx.inputs[port].ToString(), "; expected ",
                         expected);
}

absl::Status CheckType(const InferContext& ctx, int port, const char* name, DType dtype,
                       const Shape& shape, const std::string& why) {
  const ir::ValueType& got = ctx.inputs[port];
  if (got.dtype == dtype && got.shape == shape) return absl::OkStatus();
  return InvalidArgument(ctx.op, ": ", name, " is ", got.ToString(), "; expected ",
                         ir::ValueType{dtype, shape}.ToString(), " (", why, ")");
}

absl::Status CheckSameDType(const InferContext& ctx, int port, const char* name, int other,
                            const char* other_name) {
  if (ctx.inputs[port].dtype == ctx.inputs[other].dtype) return absl::OkStatus();
  return InvalidArgument(ctx.op, ": ", name, " is ", ctx.inputs[port].ToString(), "; expected ",
                         Name(ctx.inputs[other].dtype), ", the dtype of ", other_name);
}

absl::Status CheckBias(const InferContext& ctx, int port, DType x, int64_t channels) {
  const ir::ValueType& b = ctx.inputs[port];
  const bool dtype_ok = b.dtype == x || (IsLow(x) && b.dtype == DType::kF32);
  if (dtype_ok && b.shape == Shape{channels}) return absl::OkStatus();
  return InvalidArgument(ctx.op, ": b is ", b.ToString(), "; expected ",
                         ir::ValueType{x, Shape{channels}}.ToString(),
                         IsLow(x) ? Concat(" or f32[", channels, "]") : "");
}

absl::Status CheckInts(const InferContext& ctx, const char* attr, size_t size, int64_t min,
                       int64_t max) {
  const Ints& values = ctx.attrs.GetInts(attr);
  bool good = values.size() == size;
  for (int64_t v : values) good = good && v >= min && v <= max;
  if (good) return absl::OkStatus();
  return InvalidArgument(ctx.op, ": ", attr, " is ", IntsText(values), "; expected ", size,
                         " integers of at least ", min,
                         max < kMaxElements ? Concat(" and at most ", max) : "");
}

absl::Status CheckChoice(const InferContext& ctx, const char* attr,
                         const std::vector<std::string>& choices) {
  const std::string& value = ctx.attrs.GetString(attr);
  std::string expected;
  for (const std::string& choice : choices) {
    if (value == choice) return absl::OkStatus();
    expected += Concat(expected.empty() ? "" : ", ", "\"", choice, "\"");
  }
  return InvalidArgument(ctx.op, ": ", attr, " is \"", value, "\"; expected one of ", expected);
}

absl::Status CheckFloat(const InferContext& ctx, const char* attr, bool holds,
                        const char* expected) {
  if (holds) return absl::OkStatus();
  return InvalidArgument(ctx.op, ": ", attr, " is ", ctx.attrs.GetFloat(attr), "; expected ",
                         expected);
}

absl::StatusOr<Shape> ShapeAttr(const InferContext& ctx, const char* attr, int rank) {
  const Ints& dims = ctx.attrs.GetInts(attr);
  absl::StatusOr<Shape> shape = Shape::Make(dims);
  if (!shape.ok() || shape->rank() != rank) {
    return InvalidArgument(ctx.op, ": ", attr, " is ", IntsText(dims), "; expected ", rank,
                           " extents");
  }
  return shape;
}

std::string WidenTo(DType from, DType to) {
  HT_CHECK(from == to || to == DType::kF32, "an absorbed cast goes to f32");
  return from == to ? "" : "f32";
}

std::string IntsText(const Ints& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += Concat(i ? "," : "", values[i]);
  return text + "]";
}

double IoBytes(const ir::Node& node) {
  double bytes = 0;
  for (const ir::Value& v : node.inputs()) bytes += static_cast<double>(v.type().num_bytes());
  for (int i = 0; i < node.num_outputs(); ++i) {
    bytes += static_cast<double>(node.output_type(i).num_bytes());
  }
  return bytes;
}

Ints AxesBut(int rank, int axis) {
  Ints axes;
  for (int i = 0; i < rank; ++i) {
    if (i != axis) axes.push_back(i);
  }
  return axes;
}

Ints AllAxes(int rank) { return AxesBut(rank, -1); }

namespace {
Expr NnReduce(const char* op, Expr x, const Ints& axes, bool keepdim) {
  if (!x.valid() || axes.empty()) return x;
  return x.builder()->Op(op, {x}, {{"axes", axes}, {"keepdim", keepdim}});
}
}  // namespace

Expr Sum(Expr x, const Ints& axes, bool keepdim) { return NnReduce("sum", x, axes, keepdim); }
Expr Mean(Expr x, const Ints& axes, bool keepdim) { return NnReduce("mean", x, axes, keepdim); }
Expr Max(Expr x, const Ints& axes, bool keepdim) { return NnReduce("max", x, axes, keepdim); }

}  // namespace halftone::ops
