#include "halftone/tests/passes/rounding_bound.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "halftone/core/check.h"
#include "halftone/passes/amp/amp_graph.h"

namespace halftone::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Half of the last place relative to the value, and half of the smallest number.
struct Unit {
  double relative, absolute;
};
Unit UnitOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {std::ldexp(1, -11), std::ldexp(1, -25)};
    case DType::kBF16:
      return {std::ldexp(1, -8), 0};
    default:
      // Of both runs.
      return {std::ldexp(1, -23), std::ldexp(1, -148)};
  }
}

class Bounds {
 public:
  Bounds(const ir::Graph& graph, const NodeValues& values, const ir::Evaluator& evaluator)
      : graph_(graph), f32_(values), evaluator_(evaluator) {}

  NodeValues Run(const ir::Graph& amp) {
    for (const auto& node : amp.nodes()) {
      if (node->num_outputs() > 0) bounds_[node->name()] = {BoundOf(*node)};
    }
    return std::move(bounds_);
  }

 private:
  // The f32 run's value: that of what a cast of the pass reads.
  const Tensor& Value(ir::Value value) const {
    value = passes::LookThroughAmpCasts(value);
    return f32_.at(value.node->name())[static_cast<size_t>(value.index)];
  }
  const Tensor& Bound(ir::Value value) const { return bounds_.at(value.node->name())[0]; }

  Tensor Zero(const ir::Node& node) const {
    return Tensor::Full(DType::kF32, node.output_type().shape, 0);
  }

  // The node in f32 on other operands.
  Tensor Evaluate(const ir::Node& node, const std::vector<Tensor>& inputs) const {
    const auto out = evaluator_.Evaluate(*graph_.FindNode(node.name()), inputs);
    HT_CHECK(out.ok(), "a node of the f32 graph runs");
    return out->front();
  }

  Tensor BoundOf(const ir::Node& node) const {
    if (node.num_inputs() == 0 || !IsFloat(node.output_type().dtype)) return Zero(node);
    Tensor bound = passes::IsAmpCast(node) ? Bound(node.input(0)).Clone() : Propagated(node);
    const Tensor& value = Value(node.output());
    const Unit unit = UnitOf(node.output_type().dtype);
    const bool rounds = passes::IsAmpCast(node) || !Moves(node);
    for (int64_t i = 0; rounds && i < bound.num_elements(); ++i) {
      const double e = bound.at(i);
      bound.set(i, e + unit.relative * (std::abs(value.at(i)) + e) + unit.absolute);
    }
    return bound;
  }

  static bool Moves(const ir::Node& node) {
    static const std::set<std::string> ops = {"reshape", "transpose", "slice",   "concat",
                                              "where",   "relu",      "abs",     "neg",
                                              "max",     "maximum",   "minimum", "broadcast_to"};
    return ops.contains(node.op().name);
  }

  // max |f(v +- e) - f(v)|.
  Tensor AtEnds(const ir::Node& node) const {
    const Tensor &v = Value(node.input(0)), &e = Bound(node.input(0)), &y = Value(node.output());
    Tensor bound = Zero(node);
    for (int sign : {-1, 1}) {
      Tensor moved = v.Clone();
      for (int64_t i = 0; i < v.num_elements(); ++i) moved.set(i, v.at(i) + sign * e.at(i));
      const Tensor out = Evaluate(node, {moved});
      for (int64_t i = 0; i < v.num_elements(); ++i) {
        const double d = std::abs(out.at(i) - y.at(i));
        bound.set(i, std::isnan(d) ? kInfinity : std::max(bound.at(i), d));
      }
    }
    return bound;
  }

  Tensor Scaled(Tensor t, double by) const {
    for (int64_t i = 0; i < t.num_elements(); ++i) t.set(i, t.at(i) * by);
    return t;
  }

  // Elementwise with broadcasting: f(a, b, ea, eb).
  Tensor Binary(const ir::Node& node,
                const std::function<double(double, double, double, double)>& f) const {
    const Shape& shape = node.output_type().shape;
    const Tensor a = Broadcast(Value(node.input(0)), shape),
                 b = Broadcast(Value(node.input(1)), shape);
    const Tensor ea = Broadcast(Bound(node.input(0)), shape),
                 eb = Broadcast(Bound(node.input(1)), shape);
    Tensor bound = Zero(node);
    for (int64_t i = 0; i < bound.num_elements(); ++i) {
      bound.set(i, f(a.at(i), b.at(i), ea.at(i), eb.at(i)));
    }
    return bound;
  }

  static Tensor Broadcast(const Tensor& t, const Shape& shape) {
    Tensor out = Tensor::Full(DType::kF32, shape, 0);
    const int offset = shape.rank() - t.shape().rank();
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      int64_t rest = i, from = 0, stride = 1;
      for (int axis = shape.rank() - 1; axis >= 0; --axis) {
        const int64_t at = rest % shape[axis];
        rest /= shape[axis];
        if (axis < offset) continue;
        const int64_t dim = t.shape()[axis - offset];
        from += (dim == 1 ? 0 : at) * stride;
        stride *= dim;
      }
      out.set(i, t.at(from));
    }
    return out;
  }

  // |a| eb + ea |b| + ea eb, by the product itself.
  Tensor OfMatmul(const ir::Node& node) const {
    const auto magnitudes = [](const Tensor& value, const Tensor& bound) {
      Tensor t = value.Clone();
      for (int64_t i = 0; i < t.num_elements(); ++i) t.set(i, std::abs(t.at(i)) + bound.at(i));
      return t;
    };
    const Tensor none = Tensor::Full(DType::kF32, Value(node.input(0)).shape(), 0);
    const Tensor none_b = Tensor::Full(DType::kF32, Value(node.input(1)).shape(), 0);
    const Tensor moved = Evaluate(node, {magnitudes(Value(node.input(0)), Bound(node.input(0))),
                                         magnitudes(Value(node.input(1)), Bound(node.input(1)))});
    const Tensor exact = Evaluate(
        node, {magnitudes(Value(node.input(0)), none), magnitudes(Value(node.input(1)), none_b)});
    Tensor bound = Zero(node);
    for (int64_t i = 0; i < bound.num_elements(); ++i) {
      // And what f32 sums lose, of numbers of this size.
      bound.set(i, moved.at(i) - exact.at(i) + 1e-5 * moved.at(i));
    }
    return bound;
  }

  // Every p moves by no more than the factor e^(2 max e).
  Tensor OfSoftmax(const ir::Node& node) const {
    const Tensor &p = Value(node.output()), &e = Bound(node.input(0));
    const int64_t n = p.shape()[p.shape().rank() - 1];
    Tensor bound = Zero(node);
    for (int64_t i = 0; i < p.num_elements(); ++i) {
      double worst = 0;
      for (int64_t j = i / n * n; j < i / n * n + n; ++j) worst = std::max(worst, e.at(j));
      bound.set(i, std::min(1.0, p.at(i) * std::expm1(2 * worst)));
    }
    return bound;
  }

  // What is selected, or the other one where the comparison may come out otherwise.
  Tensor OfWhere(const ir::Node& node) const {
    const Shape& shape = node.output_type().shape;
    const Tensor a = Broadcast(Value(node.input(1)), shape),
                 b = Broadcast(Value(node.input(2)), shape);
    const Tensor ea = Broadcast(Bound(node.input(1)), shape),
                 eb = Broadcast(Bound(node.input(2)), shape);
    Tensor bound = Zero(node);
    for (int64_t i = 0; i < bound.num_elements(); ++i) {
      const double apart = std::abs(a.at(i) - b.at(i)), e = std::max(ea.at(i), eb.at(i));
      bound.set(i, apart <= ea.at(i) + eb.at(i) ? apart + e : e);
    }
    return bound;
  }

  Tensor Propagated(const ir::Node& node) const {
    const std::string& op = node.op().name;
    std::vector<Tensor> bounds;
    for (ir::Value input : node.inputs()) bounds.push_back(Bound(input));
    if (op == "where") return OfWhere(node);
    if (op == "matmul") return OfMatmul(node);
    if (op == "softmax") return OfSoftmax(node);
    if (op == "add" || op == "sub") {
      return Binary(node, [](double, double, double ea, double eb) { return ea + eb; });
    }
    if (op == "maximum" || op == "minimum") {
      return Binary(node, [](double, double, double ea, double eb) { return std::max(ea, eb); });
    }
    if (op == "mul") {
      return Binary(node, [](double a, double b, double ea, double eb) {
        return std::abs(a) * eb + std::abs(b) * ea + ea * eb;
      });
    }
    if (op == "div") {
      return Binary(node, [](double a, double b, double ea, double eb) {
        const double least = std::abs(b) - eb;
        return least <= 0 ? kInfinity : (ea + std::abs(a / b) * eb) / least;
      });
    }
    if (op == "relu" || op == "abs" || op == "neg") return bounds[0].Clone();
    if (op == "silu") return Scaled(bounds[0].Clone(), 1.1);  // its steepest slope
    if (op == "sum" || op == "mean" || op == "max") {
      Tensor of_bounds = Evaluate(node, bounds);
      const Tensor sizes = Evaluate(node, {Sizes(Value(node.input(0)), bounds[0])});
      for (int64_t i = 0; i < of_bounds.num_elements(); ++i) {
        of_bounds.set(i, of_bounds.at(i) + 1e-5 * sizes.at(i));
      }
      return of_bounds;
    }
    if (op == "reshape" || op == "transpose" || op == "slice" || op == "concat") {
      return Evaluate(node, bounds);
    }
    return AtEnds(node);
  }

  static Tensor Sizes(const Tensor& value, const Tensor& bound) {
    Tensor t = value.Clone();
    for (int64_t i = 0; i < t.num_elements(); ++i) t.set(i, std::abs(t.at(i)) + bound.at(i));
    return t;
  }

  const ir::Graph& graph_;  // in f32
  const NodeValues& f32_;
  const ir::Evaluator& evaluator_;
  NodeValues bounds_;
};

}  // namespace

NodeValues AllValues(const ir::Graph& graph, const GraphFeeds& feeds,
                     const ir::Evaluator& evaluator) {
  const std::unique_ptr<ir::Graph> all = graph.Clone();
  std::vector<const ir::Node*> nodes;
  all->outputs().clear();
  for (const auto& node : all->nodes()) {
    if (node->num_outputs() == 0) continue;
    nodes.push_back(node.get());
    for (int i = 0; i < node->num_outputs(); ++i) all->outputs().push_back({"", node->output(i)});
  }
  const auto results = RunGraph(*all, feeds, evaluator);
  HT_CHECK(results.ok(), "the graph runs");
  NodeValues values;
  size_t next = 0;
  for (const ir::Node* node : nodes) {
    for (int i = 0; i < node->num_outputs(); ++i) {
      values[node->name()].push_back(results->outputs[next++]);
    }
  }
  return values;
}

NodeValues RoundingBounds(const ir::Graph& amp, const ir::Graph& f32, const NodeValues& values,
                          const ir::Evaluator& evaluator) {
  return Bounds(f32, values, evaluator).Run(amp);
}

}  // namespace halftone::testing
