#include "halftone/passes/amp/quantise_matmuls.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "halftone/passes/rewrite/graph_phase.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ir::Expr;

constexpr char kPass[] = "quantise-matmuls";
constexpr char kStatePrefix[] = "f8.";
constexpr char kScale[] = ".scale";
constexpr char kHistory[] = ".amax_history";
// What cuBLASLt wants the extents of 8-bit operands to be multiples of.
constexpr int64_t kUnit = 16;

ir::Variable State(const std::string& name, Shape shape, double init) {
  ir::Variable variable;
  variable.name = name;
  variable.type = {DType::kF32, std::move(shape)};
  variable.kind = ir::VariableKind::kScaler;
  variable.trainable = false;
  variable.init.a = init;
  return variable;
}

class Quantiser {
 public:
  explicit Quantiser(const ir::Graph& graph) {
    const std::vector<Phase> phases = PhasesOf(graph);
    for (size_t i = 0; i < phases.size(); ++i) {
      if (phases[i] != Phase::kForward) later_.insert(graph.nodes()[i].get());
    }
    // Before autodiff, where a tool asks what a step would be, its marker tells.
    trains_ = std::any_of(graph.nodes().begin(), graph.nodes().end(), [this](const auto& node) {
      return later_.contains(node.get()) || IsOp(*node, "backward") || IsOp(*node, "gradient");
    });
    for (const ir::Variable& variable : graph.variables()) taken_.insert(variable.name);
  }

  // Why `node`, a product in 16 bit, stays so; empty: it need not.
  std::string WhyNot(const ir::Node& node) const {
    if (!trains_) return "the step has no backward pass";
    const Shape &a = node.input_type(0).shape, &b = node.input_type(1).shape;
    const ir::Attributes attrs = node.op().amp.in_f8(node);
    const bool ta = Flag(attrs, "transpose_a"), tb = Flag(attrs, "transpose_b");
    if (a.rank() < 2) return "a vector is no matrix";
    if (b.rank() != 2 || (ta && a.rank() != 2)) return "both operands are stacks of matrices";
    const int64_t inner = b[tb ? 1 : 0], columns = b[tb ? 0 : 1];
    if (a.num_elements() == 0) return "the product is empty";
    if (inner % kUnit != 0) return NoMultiple("inner size", inner);
    if (columns % kUnit != 0) return NoMultiple("columns", columns);
    if (IsOfBackward(node.input(0)) && IsOfBackward(node.input(1))) {
      return "both operands are of the backward pass, and no product takes two of f8e5m2";
    }
    return "";
  }

  absl::StatusOr<ir::Value> Replace(ir::Node& node) {
    ir::Builder builder = BuilderLike(node, kPass);
    std::vector<Expr> operands(2), inverses(2);
    for (int port = 0; port < 2; ++port) {
      const Quantised* q = nullptr;
      HT_ASSIGN_OR_RETURN(q, Quantise(node, port));
      Expr& operand = operands[static_cast<size_t>(port)];
      operand = builder.Wrap(q->value);
      const Shape& shape = node.input_type(port).shape;
      if (q->value.shape() != shape) {
        operand =
            builder.Op("reshape", {operand},
                       {{"shape", std::vector<int64_t>(shape.dims().begin(), shape.dims().end())}});
      }
      inverses[static_cast<size_t>(port)] = builder.Wrap(q->inverse);
    }
    std::vector<Expr> inputs = {operands[0], operands[1], inverses[0], inverses[1]};
    for (int port = 2; port < node.num_inputs(); ++port) {
      inputs.push_back(builder.Wrap(node.input(port)));
    }
    ir::Attributes attrs = node.op().amp.in_f8(node);
    attrs.Set("to", node.output_type().dtype);
    builder.NameNext(node.name() + "_f8");
    const Expr y = builder.Op("f8_matmul", inputs, attrs);
    HT_RETURN_IF_ERROR(builder.status());
    if (node.amp.decided) {
      ir::AmpDecision& decision = y.value().node->amp;
      decision = node.amp;
      decision.dtype = DType::kF8E4M3;
      decision.reason = Concat("f8e4m3: ", Clause(node.amp), "; scaled operands of 8 bits");
    }
    return y.value();
  }

  size_t count() const { return quantised_.size(); }

  // "bf16: listed; not f8: columns 10 are no multiple of 16".
  static void Explain(ir::Node& node, const std::string& why) {
    if (node.amp.decided) node.amp.reason += "; not f8: " + why;
  }

 private:
  struct Quantised {
    ir::Value value, inverse;
  };

  static bool Flag(const ir::Attributes& attrs, const char* name) {
    return attrs.Has(name) && attrs.GetBool(name);
  }
  static std::string NoMultiple(const char* what, int64_t extent) {
    return Concat(what, " ", extent, ", no multiple of ", kUnit);
  }
  static std::string Clause(const ir::AmpDecision& amp) {
    const std::string prefix = Concat(Name(amp.dtype), ": ");
    return amp.reason.rfind(prefix, 0) == 0 ? amp.reason.substr(prefix.size()) : amp.reason;
  }

  // Where a value was computed: what only moves or rounds it does not count.
  bool IsOfBackward(ir::Value v) const {
    while (IsCast(*v.node) || IsOp(*v.node, "reshape") || IsOp(*v.node, "transpose")) {
      v = v.node->input(0);
    }
    return later_.contains(v.node);
  }

  absl::StatusOr<const Quantised*> Quantise(const ir::Node& product, int port) {
    ir::Value x = product.input(port);
    // The gradient of a layer on a stack of rows reads its operand as a matrix.
    while (IsOp(*x.node, "reshape")) x = x.node->input(0);
    const DType format = IsOfBackward(x) ? DType::kF8E5M2 : DType::kF8E4M3;
    const auto [found, is_new] =
        quantised_.try_emplace(std::make_tuple(x.node->id(), x.index, format));
    if (!is_new) return &found->second;
    ir::Builder b = BuilderLike(product, kPass);
    const std::string name = NewName(product, port);
    const Expr scale = b.Var(State(name + kScale, {}, 1));
    const Expr history = b.Var(State(name + kHistory, {kF8History}, 0));
    b.NameNext(x.node->name() + "_" + Name(format));
    const std::vector<Expr> parts = b.Make("f8_quantise", {b.Wrap(x), scale}, {{"to", format}});
    HT_RETURN_IF_ERROR(b.status());
    b.NameNext(name + ".next");
    const std::vector<Expr> next =
        b.Make("f8_scale_update", {history, scale, parts[2]}, {{"to", format}});
    HT_RETURN_IF_ERROR(b.status());
    b.Commit(name + kHistory, next[0]);
    b.Commit(name + kScale, next[1]);
    HT_RETURN_IF_ERROR(b.status());
    found->second = {parts[0].value(), parts[1].value()};
    return &found->second;
  }

  // By the product that is the first to read it: "f8.fc1.linear.a".
  std::string NewName(const ir::Node& product, int port) {
    std::string base = Concat(kStatePrefix, product.path(), port == 0 ? ".a" : ".b");
    std::replace(base.begin(), base.end(), '/', '.');
    std::string name = base;
    for (int i = 1; taken_.contains(name + kScale); ++i) name = Concat(base, "_", i);
    taken_.insert(name + kScale);
    return name;
  }

  std::set<const ir::Node*> later_;  // of the backward pass and the updates
  bool trains_ = false;
  std::set<std::string> taken_;  // names of variables
  std::map<std::tuple<int64_t, int, DType>, Quantised> quantised_;
};

class QuantiseMatmuls : public Pass {
 public:
  const char* name() const override { return kPass; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const std::vector<ir::Node*> markers = FindMarkers(graph, kF8Marker);
    if (markers.empty()) return false;
    graph.Remove(markers);
    const std::string no_f8 = context.target->WhyNoF8();
    if (!no_f8.empty()) context.notes.push_back("amp: bf16 instead of f8: " + no_f8);
    Quantiser quantiser(graph);
    Replacements replacements;
    std::vector<ir::Node*> replaced;
    for (ir::Node* node : Snapshot(graph)) {
      if (!node->op().amp.in_f8) continue;
      replacements.Update(*node);
      if (!IsLow(node->input_type(0).dtype) || !IsLow(node->input_type(1).dtype)) continue;
      const std::string why = no_f8.empty() ? quantiser.WhyNot(*node) : no_f8;
      if (!why.empty()) {
        Quantiser::Explain(*node, why);
        continue;
      }
      HT_ASSIGN_OR_RETURN(const ir::Value y, quantiser.Replace(*node));
      replacements.Replace(node->output(), y);
      replaced.push_back(node);
    }
    replacements.Finish(graph);
    graph.Remove(replaced);
    context.stats["f8_products"] += static_cast<int64_t>(replaced.size());
    context.stats["quantised"] += static_cast<int64_t>(quantiser.count());
    HT_RETURN_IF_ERROR(graph.Sort());
    return true;
  }
};

}  // namespace

std::optional<ir::ValueType> F8StateType(const std::string& variable) {
  if (!variable.starts_with(kStatePrefix)) return std::nullopt;
  if (variable.ends_with(kScale)) return ir::ValueType{DType::kF32, Shape{}};
  if (variable.ends_with(kHistory)) return ir::ValueType{DType::kF32, Shape{kF8History}};
  return std::nullopt;
}

std::unique_ptr<Pass> MakeQuantiseMatmuls() { return std::make_unique<QuantiseMatmuls>(); }

}  // namespace halftone::passes
