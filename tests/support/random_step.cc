#include "halftone/tests/support/random_step.h"

#include <array>
#include <functional>

#include "halftone/core/philox.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/verify.h"

namespace halftone::testing {
namespace {

using ir::Builder;
using ir::Expr;
using Ints = std::vector<int64_t>;

class Maker {
 public:
  Maker(uint64_t seed, const RandomStepOptions& options)
      : options_(options),
        random_(seed),
        graph_(std::make_unique<ir::Graph>("step")),
        b_(graph_.get()) {}

  std::unique_ptr<ir::Graph> Run() {
    Start();
    for (int i = 0; i < options_.steps; ++i) {
      const size_t before = values_.size();
      Step();
      // The same op on the same operands once more.
      if (values_.size() > before && random_.Below(5) == 0) Repeat(values_.back());
    }
    Finish();
    HT_CHECK(b_.status().ok(), "a random graph does not build");
    HT_CHECK(ir::Verify(*graph_).ok(), "a random graph is not valid");
    return std::move(graph_);
  }

 private:
  template <typename T, size_t n>
  const T& Pick(const std::array<T, n>& choices) {
    return choices[random_.Below(n)];
  }
  Expr PickValue() { return values_[random_.Below(values_.size())]; }

  // Some value that `fits`; poison after a few misses.
  Expr PickWhere(const std::function<bool(Expr)>& fits) {
    for (int tries = 0; tries < 8; ++tries) {
      const Expr value = PickValue();
      if (fits(value)) return value;
    }
    return {};
  }

  void Keep(Expr value) {
    if (value.valid()) values_.push_back(value);
  }

  void Start() {
    Keep(b_.Input("x", {DType::kF32, Shape{2, 3}}));
    Keep(b_.Input("z", {DType::kF32, Shape{3, 2}}));
    for (int i = 0; i < 3; ++i) {
      ir::Variable variable;
      variable.name = "v" + std::to_string(i);
      variable.type = {DType::kF32, i == 2 ? Shape{6} : Shape{2, 3}};
      variable.kind = i == 0 ? ir::VariableKind::kParameter : ir::VariableKind::kBuffer;
      Keep(b_.Var(variable));
    }
    if (options_.convolutions) {
      Keep(b_.Input("image", {DType::kF32, Shape{1, 2, 4, 4}}));
      ir::Variable kernel;
      kernel.name = "kernel";
      kernel.type = {DType::kF32, Shape{2, 2, 3, 3}};
      kernel_ = b_.Var(kernel);
    }
  }

  void Step() {
    switch (random_.Below(10)) {
      case 0:
      case 1:
        return Unary();
      case 2:
      case 3:
        return Binary();
      case 4:
        return WithConstant();
      case 5:
        return Cast();
      case 6:
        return Shapes();
      case 7:
        return Matmul();
      case 8:
        return Reduce();
      default:
        return Image();
    }
  }

  void Unary() {
    static constexpr std::array<const char*, 6> kOps = {"relu", "neg",     "abs",
                                                        "tanh", "sigmoid", "floor"};
    const Expr x = PickWhere([](Expr v) { return IsFloat(v.dtype()); });
    if (!x.valid()) return;
    if (random_.Below(8) == 0) {
      return Keep(b_.Op("dropout", {x}, {{"p", 0.5}, {"seed", int64_t{7}}}));
    }
    Keep(b_.Op(Pick(kOps), {x}));
  }

  void Binary() {
    static constexpr std::array<const char*, 5> kOps = {"add", "sub", "mul", "maximum", "minimum"};
    const Expr a = PickValue();
    const Expr b =
        PickWhere([&](Expr v) { return v.dtype() == a.dtype() && v.shape() == a.shape(); });
    if (!b.valid() || !IsFloat(a.dtype())) return;
    if (random_.Below(4) == 0) {
      const Expr less = b_.Op("less", {a, b});
      return Keep(b_.Op("where", {less, a, b}));
    }
    Keep(b_.Op(Pick(kOps), {a, b}));
  }

  void WithConstant() {
    static constexpr std::array<const char*, 3> kOps = {"add", "sub", "mul"};
    static constexpr std::array<double, 5> kConstants = {0.0, -0.0, 1.0, 0.5, -2.0};
    const Expr x = PickWhere([](Expr v) { return IsFloat(v.dtype()); });
    if (!x.valid()) return;
    Expr c = b_.ScalarLike(x, Pick(kConstants));
    if (random_.Below(3) == 0) c = b_.Op("neg", {c});
    Keep(random_.Below(2) == 0 ? b_.Op(Pick(kOps), {x, c}) : b_.Op("mul", {c, x}));
  }

  void Cast() {
    static constexpr std::array<DType, 4> kDTypes = {DType::kF32, DType::kF16, DType::kBF16,
                                                     DType::kF64};
    if (!options_.low_dtypes) return;
    Keep(b_.Op("cast", {PickValue()}, {{"to", Pick(kDTypes)}}));
  }

  void Shapes() {
    static const std::array<Ints, 3> kShapes = {Ints{2, 3}, Ints{3, 2}, Ints{6}};
    const Expr x = PickValue();
    if (x.type().num_elements() == 6) {
      if (x.shape().rank() == 2 && random_.Below(2) == 0) {
        return Keep(b_.Op("transpose", {x}, {{"perm", Ints{1, 0}}}));
      }
      return Keep(b_.Op("reshape", {x}, {{"shape", Pick(kShapes)}}));
    }
    if (x.type().num_elements() == 1) {
      return Keep(b_.Op("broadcast_to", {b_.Op("reshape", {x}, {{"shape", Ints{1, 1}}})},
                        {{"shape", Ints{2, 3}}}));
    }
    if (x.shape().rank() == 2 && x.shape()[0] == 2) {
      Keep(b_.Op("concat", {x, x}, {{"axis", int64_t{0}}}));
    }
  }

  void Matmul() {
    const Expr a = PickWhere([](Expr v) { return v.shape() == Shape{2, 3}; });
    const Expr b = PickWhere([](Expr v) { return v.shape() == Shape{3, 2}; });
    if (!a.valid() || !b.valid() || a.dtype() != b.dtype() || !IsFloat(a.dtype())) return;
    Keep(b_.Op("matmul", {a, b}));
    Keep(b_.Op("matmul", {b, a}));
  }

  void Reduce() {
    const Expr x = PickWhere([](Expr v) { return IsFloat(v.dtype()) && v.shape().rank() == 2; });
    if (!x.valid()) return;
    if (random_.Below(2) == 0) return Keep(b_.Op("mean", {x}, {{"axes", Ints{}}}));
    Keep(b_.Op("sum_to_shape", {x}, {{"shape", Ints{1, x.shape()[1]}}}));
  }

  void Image() {
    if (!options_.convolutions) return;
    const Expr x = PickWhere([](Expr v) { return v.shape() == Shape{1, 2, 4, 4}; });
    if (!x.valid()) return;
    switch (random_.Below(4)) {
      case 0:
        if (x.dtype() != DType::kF32) return;
        return Keep(b_.Op("conv2d", {x, kernel_}, {{"padding", Ints{1, 1}}}));
      case 1:
        return Keep(b_.Op("max_pool2d", {x}, {{"kernel", Ints{4, 4}}, {"stride", Ints{4, 4}}}));
      case 2:
        return Keep(b_.Op("avg_pool2d", {x}, {{"kernel", Ints{2, 2}}, {"stride", Ints{2, 2}}}));
      default:
        return Keep(b_.Op("add", {x, x}));
    }
  }

  void Repeat(Expr value) {
    const ir::Node& node = *value.value().node;
    if (node.num_inputs() == 0) return;
    std::vector<Expr> inputs;
    for (ir::Value v : node.inputs()) inputs.push_back(b_.Wrap(v));
    Keep(b_.Op(node.op().name, inputs, node.attrs()));
  }

  void Finish() {
    const auto outputs = 1 + random_.Below(3);
    for (uint64_t i = 0; i < outputs; ++i) graph_->outputs().push_back({"", PickValue().value()});
    if (!options_.commits) return;
    for (const ir::Variable& variable : graph_->variables()) {
      if (variable.name == "kernel") continue;
      const Expr value = PickWhere([&](Expr v) {
        return v.dtype() == variable.type.dtype && v.shape() == variable.type.shape;
      });
      if (value.valid()) b_.Commit(variable.name, value);
    }
  }

  const RandomStepOptions options_;
  PhiloxStream random_;
  std::unique_ptr<ir::Graph> graph_;
  Builder b_;
  std::vector<Expr> values_;
  Expr kernel_;
};

}  // namespace

std::unique_ptr<ir::Graph> RandomStep(uint64_t seed, const RandomStepOptions& options) {
  return Maker(seed, options).Run();
}

}  // namespace halftone::testing
