// Normalisations.
#include <algorithm>
#include <tuple>

#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"

namespace halftone::onnx {
namespace {

// 16-bit values as f32: statistics need the digits.
DType WideOf(DType dtype) { return IsLow(dtype) ? DType::kF32 : dtype; }

// (x - mean) / sqrt(var + eps) over axes, in the dtype of x.
Expr Standardised(Expr x, const Ints& axes, double eps) {
  const Expr centred = x - Reduce("mean", x, axes);
  const Expr variance = Reduce("mean", centred * centred, axes);
  return centred / ops::Sqrt(variance + eps);
}

// Extents as [N, C, ...] with all axes behind the third in it, which batch_norm takes.
Ints AtMostFour(Ints extents) {
  while (extents.size() > 4) {
    extents[extents.size() - 2] *= extents.back();
    extents.pop_back();
  }
  return extents;
}

Exprs ImportBatchNorm(NodeImport& n) {
  const double eps = n.Float("epsilon", 1e-5), momentum = n.Float("momentum", 0.9);
  if (n.Int("spatial", 1) != 1) n.Fail("spatial = 0 is not covered");
  const bool training = n.Bool("training_mode", false);
  const Expr x = n.in(0);
  Exprs operands;
  const DType wide = WideOf(n.dtype(0));
  for (int i = 1; i < 5; ++i) operands.push_back(ops::CastTo(n.in(i), wide));
  const Ints extents = n.shape(0);
  if (extents.size() < 2) n.Fail("rank ", extents.size(), "; expected channels");
  if (!n.ok()) return {};
  if (!training) {
    operands.insert(operands.begin(), Reshape(x, AtMostFour(extents)));
    if (extents.size() <= 4) {
      return {n.Result("batch_norm_inference", operands, {{"eps", eps}})};
    }
    return {Reshape(n.b.Op("batch_norm_inference", operands, {{"eps", eps}}), extents)};
  }
  // Statistics of the batch, both with the variance over n, as ONNX has it and batch_norm has not.
  const auto rank = static_cast<int>(extents.size());
  Ints axes = Range(0, rank);
  axes.erase(axes.begin() + 1);
  const Expr wide_x = ops::CastTo(x, wide);
  const Expr mean = Reduce("mean", wide_x, axes);
  const Expr centred = wide_x - mean;
  const Expr variance = Reduce("mean", centred * centred, axes);
  const Expr y = centred / ops::Sqrt(variance + eps) * PerChannel(operands[0], rank) +
                 PerChannel(operands[1], rank);
  Exprs outputs = {ops::CastTo(y, n.dtype(0))};
  for (const auto& [old, batch, i] :
       {std::tuple(operands[2], mean, 3), std::tuple(operands[3], variance, 4)}) {
    const Expr moved = old * momentum + Reshape(batch, ExtentsOf(old)) * (1 - momentum);
    outputs.push_back(ops::CastTo(moved, n.dtype(i)));
  }
  return outputs;
}

Exprs ImportInstanceNorm(NodeImport& n) {
  const double eps = n.Float("epsilon", 1e-5);
  const auto rank = static_cast<int>(n.shape(0).size());
  const DType wide = WideOf(n.dtype(0));
  const Expr x = ops::CastTo(n.in(0), wide);
  const Expr gamma = ops::CastTo(n.in(1), wide), beta = ops::CastTo(n.in(2), wide);
  if (rank < 3) n.Fail("rank ", rank, "; expected spatial axes");
  if (!n.ok()) return {};
  const Expr y = Standardised(x, Range(2, rank), eps) * PerChannel(gamma, rank);
  return {ops::CastTo(y + PerChannel(beta, rank), n.dtype(0))};
}

// A scale for each group before opset 21, for each channel from then on.
Exprs ImportGroupNorm(NodeImport& n) {
  const double eps = n.Float("epsilon", 1e-5);
  const int64_t groups = n.Int("num_groups", 0);
  n.Ignore("stash_type");
  const Ints extents = n.shape(0);
  const DType wide = WideOf(n.dtype(0));
  const Expr x = ops::CastTo(n.in(0), wide);
  const Expr gamma = ops::CastTo(n.in(1), wide), beta = ops::CastTo(n.in(2), wide);
  if (extents.size() < 3 || groups < 1 || extents[1] % groups != 0) {
    n.Fail("num_groups is ", groups, "; expected a divisor of the channels");
  }
  if (!n.ok()) return {};
  const int64_t inside = Product({extents.begin() + 2, extents.end()});
  const Ints split = {extents[0], groups, extents[1] / groups, inside};
  const Expr y = Standardised(Reshape(x, split), {2, 3}, eps);
  const bool per_group = n.shape(1) == Ints{groups} && groups != extents[1];
  const auto rank = static_cast<int>(extents.size());
  if (per_group) {
    return {
        ops::CastTo(Reshape(y * PerChannel(gamma, 4) + PerChannel(beta, 4), extents), n.dtype(0))};
  }
  return {ops::CastTo(Reshape(y, extents) * PerChannel(gamma, rank) + PerChannel(beta, rank),
                      n.dtype(0))};
}

// Over the axes from `axis` on. Outputs: y, the mean, 1 / sqrt(var + eps).
Exprs ImportLayerNorm(NodeImport& n) {
  const double eps = n.Float("epsilon", 1e-5);
  const int64_t axis = n.Axis(n.Int("axis", -1));
  n.Ignore("stash_type");
  const Ints extents = n.shape(0);
  const DType wide = WideOf(n.dtype(0));
  const Expr gamma = ops::CastTo(n.in(1), wide);
  if (!n.ok()) return {};
  const Ints inside(extents.begin() + axis, extents.end());
  const Expr beta = n.has(2) ? ops::CastTo(n.in(2), wide) : Broadcast(n.b.Scalar(wide, 0), inside);
  const Exprs operands = {n.in(0), Broadcast(gamma, inside), Broadcast(beta, inside)};
  if (n.ok()) n.b.NameNext(n.node.outputs.empty() ? "" : n.node.outputs[0]);
  Exprs outputs = n.b.Make("layer_norm", operands,
                           {{"axes_count", static_cast<int64_t>(inside.size())}, {"eps", eps}});
  Ints statistics = extents;
  std::fill(statistics.begin() + axis, statistics.end(), 1);
  for (size_t i = 1; i < outputs.size(); ++i) {
    outputs[i] = n.num_outputs() > static_cast<int>(i) ? Reshape(outputs[i], statistics) : Expr();
  }
  return outputs;
}

// x / sqrt(mean(x^2) + eps) gamma over the axes from `axis` on.
Exprs ImportRmsNorm(NodeImport& n) {
  const double eps = n.Float("epsilon", 1e-5);
  const int64_t axis = n.Axis(n.Int("axis", -1));
  n.Ignore("stash_type");
  const DType wide = WideOf(n.dtype(0));
  const Expr x = ops::CastTo(n.in(0), wide), gamma = ops::CastTo(n.in(1), wide);
  if (!n.ok()) return {};
  const Expr mean = Reduce("mean", x * x, Range(axis, static_cast<int64_t>(n.shape(0).size())));
  return {ops::CastTo(x / ops::Sqrt(mean + eps) * gamma, n.dtype(0))};
}

Exprs ImportMeanVarianceNorm(NodeImport& n) {
  Ints axes = n.IntList("axes", {0, 2, 3});
  for (int64_t& axis : axes) axis = n.Axis(axis);
  return {n.ok() ? Standardised(n.in(0), axes, 0) : Expr()};
}

// x / |x| along an axis; 0 stays 0.
Exprs ImportLpNorm(NodeImport& n) {
  const int64_t axis = n.Axis(n.Int("axis", -1)), p = n.Int("p", 2);
  const Expr x = n.in(0);
  if (p != 1 && p != 2) n.Fail("p is ", p, "; expected 1 or 2");
  if (!n.ok()) return {};
  const Expr norm =
      p == 1 ? Reduce("sum", ops::Abs(x), {axis}) : ops::Sqrt(Reduce("sum", x * x, {axis}));
  const Expr zero = n.b.ScalarLike(x, 0);
  return {ops::Where(ops::Equal(norm, zero), zero, x / norm)};
}

// x / (bias + alpha / size sum of x^2 over `size` channels around)^beta
Exprs ImportLrn(NodeImport& n) {
  const double alpha = n.Float("alpha", 1e-4), beta = n.Float("beta", 0.75);
  const double bias = n.Float("bias", 1);
  const int64_t size = n.Int("size", 1);
  const Expr x = n.in(0);
  const Ints extents = n.shape(0);
  constexpr int64_t kMostChannels = 64;  // a node for each
  if (size < 1 || size > kMostChannels || extents.size() < 2) {
    n.Fail("size is ", size, "; expected 1..", kMostChannels, " channels");
  }
  if (!n.ok()) return {};
  Ints before(extents.size(), 0), after = before;
  before[1] = (size - 1) / 2;
  after[1] = size - 1 - before[1];
  const Expr squares = Pad(x * x, before, after);
  Expr sum = Slice(squares, 1, 0, extents[1]);
  for (int64_t i = 1; i < size; ++i) sum = sum + Slice(squares, 1, i, i + extents[1]);
  const Expr base = sum * (alpha / static_cast<double>(size)) + bias;
  if (!n.ok()) return {};
  return {x / ops::Pow(base, n.b.ScalarLike(x, beta))};
}

void ExportLayerNorm(NodeExport& n) {
  const DType dtype = n.dtype();
  n.Give("LayerNormalization", {n.in(0), n.InAs(1, dtype), n.InAs(2, dtype)},
         {{"axis", -n.attrs().GetInt("axes_count")}, {"epsilon", n.attrs().GetFloat("eps")}});
}

void ExportBatchNorm(NodeExport& n) {
  n.Give("BatchNormalization", n.ins(), {{"epsilon", n.attrs().GetFloat("eps")}});
}

// Of the batch. The running statistics, part of a training step, are left behind.
void ExportBatchNormOfBatch(NodeExport& n) {
  const auto rank = n.shape(0).rank();
  Ints axes = Range(0, rank), channel(static_cast<size_t>(rank), 1);
  axes.erase(axes.begin() + 1);
  channel[1] = -1;
  const DType wide = WideOf(n.dtype());
  const std::string x = n.InAs(0, wide);
  const ir::Attributes over = {{"axes", axes}, {"keepdims", int64_t{1}}};
  const std::string centred = n.Add("Sub", {x, n.Add("ReduceMean", {x}, over)});
  const std::string var = n.Add("ReduceMean", {n.Add("Mul", {centred, centred})}, over);
  const std::string eps = n.NumberOf(wide, n.attrs().GetFloat("eps"));
  const std::string root = n.Add("Sqrt", {n.Add("Add", {var, eps})});
  const auto per_channel = [&](int i) {
    return n.Add("Reshape", {n.InAs(i, wide), n.Ints(channel)});
  };
  const std::string scaled = n.Add("Mul", {n.Add("Div", {centred, root}), per_channel(1)});
  const std::string y = n.Add("Add", {scaled, per_channel(2)});
  n.Give("Cast", {y}, {{"to", int64_t{DTypeNumber(n.dtype())}}});
}

}  // namespace

void AddNormRules(Rules& rules) {
  rules.Import("BatchNormalization", "batch_norm_inference", ImportBatchNorm, "spatial = 0");
  rules.Export("batch_norm_inference", "BatchNormalization", ExportBatchNorm);
  rules.Export("batch_norm", "ReduceMean, Sub, Mul, ...", ExportBatchNormOfBatch);
  rules.Import("InstanceNormalization", "mean, sub, mul, ...", ImportInstanceNorm);
  rules.Import("GroupNormalization", "reshape, mean, sub, mul, ...", ImportGroupNorm);
  rules.Import("LayerNormalization", "layer_norm", ImportLayerNorm);
  rules.Export("layer_norm", "LayerNormalization", ExportLayerNorm);
  rules.Import("RMSNormalization", "mean, sqrt, div, mul", ImportRmsNorm);
  rules.Import("MeanVarianceNormalization", "mean, sub, mul, ...", ImportMeanVarianceNorm);
  rules.Import("LpNormalization", "sum, div, where", ImportLpNorm);
  rules.Import("LRN", "pad, slice, add, pow, div", ImportLrn);
}

}  // namespace halftone::onnx
