#include "halftone/passes/autodiff/reverse_sweep.h"

#include <algorithm>

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

constexpr const char* kAutodiffPass = "autodiff";

bool IsDifferentiable(const ir::Node& node) {
  const ir::OpRecord& op = node.op();
  return !op.is_marker && !op.has_side_effect && (op.gradient || op.decompose);
}

std::set<const ir::Node*> Ancestors(const ir::Graph& graph, const std::vector<ir::Value>& values) {
  std::set<const ir::Node*> reached;
  for (ir::Value v : values) reached.insert(v.node);
  for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it) {
    if (!reached.contains(it->get())) continue;
    for (ir::Value v : (*it)->inputs()) reached.insert(v.node);
  }
  return reached;
}

bool OnPath(const std::set<ValueKey>& path, const std::vector<ir::Value>& values) {
  return std::any_of(values.begin(), values.end(),
                     [&](ir::Value v) { return path.contains(KeyOf(v)); });
}

// Gradients are not part of what the user wants recomputed.
ir::Builder GradientBuilder(const ir::Node& node) {
  ir::Builder builder = BuilderLike(node, kAutodiffPass);
  builder.set_recompute("");
  return builder;
}

std::vector<ir::Value> Outputs(const ir::Node& node) {
  std::vector<ir::Value> outputs;
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(node.output(i));
  return outputs;
}

bool IsNarrowingCast(const ir::Node& node) {
  return IsOp(node, "cast") && IsLow(node.output_type().dtype) &&
         (node.input_type(0).dtype == DType::kF32 || node.input_type(0).dtype == DType::kF64);
}

// The axis along which a gradient of a slice has a part of its shape; -1 if it has steps, or parts of
// several axes.
int PartialAxis(const ir::Node& slice_grad) {
  const ir::Attributes& attrs = slice_grad.attrs();
  const Shape& shape = slice_grad.output_type().shape;
  int partial = -1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    if (attrs.GetInts("strides")[i] != 1) return -1;
    const bool whole = attrs.GetInts("starts")[i] == 0 && attrs.GetInts("limits")[i] == shape[axis];
    if (whole) continue;
    if (partial >= 0) return -1;
    partial = axis;
  }
  return partial;
}

// Gradients of slices that cover the sliced value once, as those of q, k and v do a joint projection:
// one concatenation in place of tensors of zeros and their sum. `parts` stays as it is if there are none.
// (A sum would also turn -0 into 0.)
void JoinSlices(ir::Builder& b, std::vector<ir::Value>& parts) {
  const auto is_slice = [](ir::Value v) { return IsOp(*v.node, "slice_grad"); };
  std::vector<ir::Value> slices;
  std::copy_if(parts.begin(), parts.end(), std::back_inserter(slices), is_slice);
  if (slices.size() < 2) return;
  const int axis = PartialAxis(*slices[0].node);
  if (axis < 0) return;
  const auto bound = [axis](ir::Value v, const char* name) {
    return v.node->attrs().GetInts(name)[static_cast<size_t>(axis)];
  };
  std::sort(slices.begin(), slices.end(),
            [&](ir::Value x, ir::Value y) { return bound(x, "starts") < bound(y, "starts"); });
  int64_t covered = 0;
  std::vector<ir::Expr> pieces;
  for (const ir::Value& slice : slices) {
    if (PartialAxis(*slice.node) != axis || bound(slice, "starts") != covered) return;
    covered = bound(slice, "limits");
    pieces.push_back(b.Wrap(slice.node->input(0)));
  }
  if (covered != slices[0].shape()[axis]) return;
  std::erase_if(parts, is_slice);
  parts.push_back(b.Op("concat", pieces, {{"axis", int64_t{axis}}}).value());
}

// A gradient of a table that is mostly zeros: rows that ids name.
bool IsRows(const ir::Node& node) {
  return IsOp(node, "embedding_grad") && !node.attrs().GetBool("sparse") && node.num_inputs() == 2;
}

// sum + part. Rows are added where the sum lies, without a table of zeros around them.
ir::Expr Added(ir::Builder& b, ir::Expr sum, ir::Value part) {
  const ir::Node& node = *part.node;
  if (!IsRows(node) || part.type() != sum.type()) return b.Op("add", {sum, b.Wrap(part)});
  return b.Op("embedding_grad", {b.Wrap(node.input(0)), b.Wrap(node.input(1)), sum}, node.attrs());
}

class Sweep {
 public:
  Sweep(ir::Graph& graph, std::set<ValueKey> path) : graph_(graph), path_(std::move(path)) {}

  absl::Status Run(const std::vector<Seed>& seeds) {
    for (const Seed& seed : seeds) arriving_[KeyOf(seed.loss)].push_back(seed.gradient);
    const std::vector<ir::Node*> nodes = Snapshot(graph_);
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      HT_RETURN_IF_ERROR(Visit(**it));
    }
    return absl::OkStatus();
  }

  // The sum of what has arrived at `v`; invalid if nothing has.
  absl::StatusOr<ir::Value> Gradient(ir::Value v) {
    const auto found = arriving_.find(KeyOf(v));
    if (found == arriving_.end()) return ir::Value();
    std::vector<ir::Value>& parts = found->second;
    ir::Builder b = GradientBuilder(*v.node);
    JoinSlices(b, parts);
    std::stable_partition(parts.begin(), parts.end(),
                          [](ir::Value part) { return !IsRows(*part.node); });
    ir::Expr sum = b.Wrap(parts.front());
    for (size_t i = 1; i < parts.size(); ++i) sum = Added(b, sum, parts[i]);
    HT_RETURN_IF_ERROR(b.status());
    parts = {sum.value()};
    return sum.value();
  }

 private:
  absl::Status Visit(ir::Node& node) {
    if (!IsDifferentiable(node) || !OnPath(path_, node.inputs())) return absl::OkStatus();
    const std::vector<ir::Value> outputs = Outputs(node);
    const bool arrived = std::any_of(outputs.begin(), outputs.end(),
                                     [this](ir::Value v) { return arriving_.contains(KeyOf(v)); });
    if (!arrived) return absl::OkStatus();
    if (IsNarrowingCast(node)) return SpreadOverCast(node);

    ir::Builder b = GradientBuilder(node);
    std::vector<ir::Expr> dys;
    for (ir::Value v : outputs) {
      HT_ASSIGN_OR_RETURN(const ir::Value dy, Gradient(v));
      dys.push_back(b.Wrap(dy));
    }
    std::vector<bool> needs;
    for (ir::Value v : node.inputs()) needs.push_back(path_.contains(KeyOf(v)));
    ir::GradContext context{b, node, std::move(dys), needs,
                            std::vector<ir::Expr>(node.inputs().size())};
    node.op().gradient(context);
    HT_RETURN_IF_ERROR(Annotate(b.status(), node.Label() + ": gradient: "));
    for (int i = 0; i < node.num_inputs(); ++i) {
      const ir::Expr dx = context.dxs[i];
      if (!needs[i] || !dx.valid()) continue;
      const ir::ValueType& type = node.input_type(i);
      if (dx.dtype() != type.dtype || dx.shape() != type.shape) {
        return Internal(node.Label(), ": the gradient of operand ", i, " is ", dx.type(),
                        "; expected ", type);
      }
      arriving_[KeyOf(node.input(i))].push_back(dx.value());
    }
    return absl::OkStatus();
  }

  // Gradients that meet at a cast from f32 are cast one by one and summed in f32: a sum of casts,
  // not a cast of a sum.
  absl::Status SpreadOverCast(const ir::Node& node) {
    ir::Builder b = GradientBuilder(node);
    const std::vector<ir::Value> parts = arriving_[KeyOf(node.output())];
    for (ir::Value part : parts) {
      arriving_[KeyOf(node.input(0))].push_back(
          b.Cast(b.Wrap(part), node.input_type(0).dtype).value());
    }
    return b.status();
  }

  ir::Graph& graph_;
  const std::set<ValueKey> path_;
  std::map<ValueKey, std::vector<ir::Value>> arriving_;
};

}  // namespace

std::set<ValueKey> GradientPath(const ir::Graph& graph, const std::vector<ir::Value>& losses,
                                const std::vector<ir::Value>& wanted) {
  const std::set<const ir::Node*> reached = Ancestors(graph, losses);
  std::set<ValueKey> path;
  for (ir::Value v : wanted) {
    if (IsFloat(v.dtype())) path.insert(KeyOf(v));
  }
  for (const auto& node : graph.nodes()) {
    if (!reached.contains(node.get()) || !OnPath(path, node->inputs())) continue;
    // Of what autodiff made itself, an op without gradient would silently drop a term of a second
    // derivative; SweepBack refuses it.
    if (!IsDifferentiable(*node) && node->provenance.pass != kAutodiffPass) continue;
    if (node->op().is_marker) continue;
    for (ir::Value v : Outputs(*node)) {
      if (IsFloat(v.dtype())) path.insert(KeyOf(v));
    }
  }
  return path;
}

std::vector<ir::Node*> WithoutGradient(const ir::Graph& graph, const std::set<ValueKey>& path) {
  std::vector<ir::Node*> found;
  for (const auto& node : graph.nodes()) {
    if (node->op().gradient || !node->op().decompose || !OnPath(path, node->inputs())) continue;
    if (OnPath(path, Outputs(*node))) found.push_back(node.get());
  }
  return found;
}

absl::StatusOr<std::map<ValueKey, ir::Value>> SweepBack(ir::Graph& graph,
                                                        const std::vector<Seed>& seeds,
                                                        const std::vector<ir::Value>& wanted) {
  std::vector<ir::Value> losses;
  for (const Seed& seed : seeds) losses.push_back(seed.loss);
  std::set<ValueKey> path = GradientPath(graph, losses, wanted);
  for (const auto& node : graph.nodes()) {
    if (IsDifferentiable(*node) || !OnPath(path, node->inputs())) continue;
    if (!OnPath(path, Outputs(*node))) continue;
    return Unimplemented(node->Label(), ": ", node->op().name, " (gradient of ",
                         node->provenance.from, ") has no gradient; expected first derivatives");
  }
  Sweep sweep(graph, std::move(path));
  HT_RETURN_IF_ERROR(sweep.Run(seeds));
  std::map<ValueKey, ir::Value> gradients;
  for (ir::Value v : wanted) {
    HT_ASSIGN_OR_RETURN(const ir::Value gradient, sweep.Gradient(v));
    if (gradient.valid()) gradients[KeyOf(v)] = gradient;
  }
  return gradients;
}

}  // namespace halftone::passes
