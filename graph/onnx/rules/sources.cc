// Constants, casts and what passes values on.
#include <algorithm>
#include <cmath>

#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"

namespace halftone::onnx {
namespace {

Exprs ImportConstant(NodeImport& n) {
  if (n.node.attributes.entries().size() != 1) {
    n.Fail(n.node.attributes.entries().size(), " attributes; expected the value alone");
  }
  std::optional<Tensor> value = n.TensorAttr("value");
  if (n.has_attr("value_float")) value = Tensor::Scalar(DType::kF32, n.Float("value_float", 0));
  if (const auto* number = n.Raw<int64_t>("value_int"); number != nullptr) {
    value = Tensor::FromVector<int64_t>(Shape{}, {*number});
  }
  if (const auto* numbers = n.Raw<Ints>("value_ints"); numbers != nullptr) {
    value = Tensor::FromVector<int64_t>(Shape{static_cast<int64_t>(numbers->size())}, *numbers);
  }
  if (const auto* floats = n.Floats("value_floats"); floats != nullptr) {
    value = Tensor::Of(DType::kF32, Shape{static_cast<int64_t>(floats->size())}, *floats);
  }
  if (!value.has_value() || !n.ok()) return {};
  return {n.Result("constant", {}, {{"value", *value}})};
}

Exprs ImportConstantOfShape(NodeImport& n) {
  Tensor value = Tensor::Zeros(DType::kF32, Shape{1});
  if (const auto given = n.TensorAttr("value"); given.has_value()) value = *given;
  if (value.num_elements() != 1) n.Fail("value is ", value.TypeString(), "; expected one element");
  const Ints extents = n.StaticInts(0);
  if (!n.ok()) return {};
  return {n.Result("broadcast_to", {n.b.Constant(value.Reshape(Shape{}))}, {{"shape", extents}})};
}

Exprs ImportIdentity(NodeImport& n) { return {n.in(0)}; }

Exprs ImportCast(NodeImport& n) {
  n.Ignore("saturate");    // about 8-bit floats
  n.Ignore("round_mode");  // the same
  const std::optional<DType> to = n.DTypeAttr("to");
  if (!to.has_value()) return {};
  return {ops::CastTo(n.in(0), *to)};
}

Exprs ImportCastLike(NodeImport& n) {
  n.Ignore("saturate");
  n.Ignore("round_mode");
  return {ops::CastTo(n.in(0), n.dtype(1))};
}

// Evaluation's form: nothing is dropped.
Exprs ImportDropout(NodeImport& n) {
  n.Ignore("seed");
  n.Ignore("ratio");
  const bool drops = n.StaticNumber(2, 0) != 0 && n.StaticNumber(1, 0.5) > 0;
  if (drops) n.Fail("training_mode is true, which is not covered");
  const Expr x = n.in(0);
  Exprs outputs = {x};
  if (n.num_outputs() > 1) outputs.push_back(Broadcast(n.b.Scalar(DType::kBool, 1), n.shape(0)));
  return outputs;
}

Exprs ImportShape(NodeImport& n) {
  const Ints extents = n.shape(0);
  const auto rank = static_cast<int64_t>(extents.size());
  const auto bounded = [rank](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  const int64_t start = bounded(n.Int("start", 0)), end = bounded(n.Int("end", rank));
  if (!n.ok()) return {};
  Ints part;
  for (int64_t i = start; i < end; ++i) part.push_back(extents[static_cast<size_t>(i)]);
  const Shape length{static_cast<int64_t>(part.size())};
  return {n.Result("constant", {}, {{"value", Tensor::FromVector<int64_t>(length, part)}})};
}

Exprs ImportSize(NodeImport& n) {
  const int64_t size = Product(n.shape(0));
  if (!n.ok()) return {};
  return {n.Result("constant", {}, {{"value", Tensor::FromVector<int64_t>(Shape{}, {size})}})};
}

Exprs ImportRange(NodeImport& n) {
  const auto start = n.Static(0), limit = n.Static(1), delta = n.Static(2);
  if (!n.ok()) return {};
  if (start->num_elements() != 1 || limit->num_elements() != 1 || delta->num_elements() != 1) {
    n.Fail("expected three numbers");
    return {};
  }
  const double first = start->at(0), step = delta->at(0);
  const double count = std::ceil((limit->at(0) - first) / step);
  const bool counts = count <= static_cast<double>(kMaxStaticElements);  // also no NaN
  const int64_t length =
      counts ? static_cast<int64_t>(std::max(count, 0.0)) : kMaxStaticElements + 1;
  if (!n.Spend(length)) return {};
  Tensor values = Tensor::Empty(start->dtype(), Shape{length});
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    values.set(i, first + static_cast<double>(i) * step);
  }
  return {n.Result("constant", {}, {{"value", values}})};
}

Exprs ImportEyeLike(NodeImport& n) {
  const Ints extents = n.shape(0);
  const DType dtype = n.DTypeAttr("dtype").value_or(n.dtype(0));
  const int64_t k = n.Int("k", 0);
  if (extents.size() != 2) n.Fail("expected rank 2");
  if (!n.ok()) return {};
  const Expr row = Counting(n, extents[0], DType::kI64, 1);
  const Expr column = Counting(n, extents[1], DType::kI64);
  const Expr diagonal = ops::Equal(row + n.b.Scalar(DType::kI64, static_cast<double>(k)), column);
  return {ops::CastTo(diagonal, dtype)};
}

void ExportIdentity(NodeExport& n) { n.Give("Identity", {n.in(0)}); }

void ExportCast(NodeExport& n) {
  n.Give("Cast", {n.in(0)}, {{"to", int64_t{DTypeNumber(n.node.output_type().dtype)}}});
}

void ExportDropout(NodeExport& n) {
  if (n.attrs().GetFloat("p") != 0) {
    n.Fail("dropout draws random numbers; expected a graph of evaluation");
    return;
  }
  ExportIdentity(n);
}

}  // namespace

void AddSourceRules(Rules& rules) {
  rules.Import("Constant", "constant", ImportConstant, "strings, sparse values");
  rules.Import("ConstantOfShape", "constant, broadcast_to", ImportConstantOfShape);
  rules.Import("Shape", "constant", ImportShape);
  rules.Import("Size", "constant", ImportSize);
  rules.Import("Range", "constant", ImportRange, "operands that depend on inputs");
  rules.Import("EyeLike", "constant, equal, cast", ImportEyeLike);
  rules.Import("Identity", "", ImportIdentity);
  rules.Import("Dropout", "", ImportDropout, "training mode");
  rules.Import("Cast", "cast", ImportCast);
  rules.Import("CastLike", "cast", ImportCastLike);
  rules.Export("cast", "Cast", ExportCast);
  rules.Export("detach", "Identity", ExportIdentity);
  rules.Export("relayout", "Identity", ExportIdentity);
  rules.Export("dropout", "Identity", ExportDropout);
}

}  // namespace halftone::onnx
