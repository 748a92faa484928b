#include "halftone/tests/support/random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "halftone/core/check.h"
#include "halftone/core/philox.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/verify.h"

namespace halftone::testing {
namespace {

using ir::Expr;
using ir::ValueType;
using Ints = std::vector<int64_t>;

constexpr int64_t kMaxElements = 4096;
constexpr double kMaxBound = 1e4;

struct Item {
  Expr x;
  double bound;  // on the magnitude of every element
};

class Generator {
 public:
  Generator(uint64_t seed, const RandomGraphOptions& options)
      : rng_(seed),
        options_(options),
        graph_(std::make_unique<ir::Graph>(Concat("random_", seed))),
        b_(graph_.get()) {}

  std::unique_ptr<ir::Graph> Run() {
    AddSources();
    for (int i = 0; i < options_.steps; ++i) {
      if (Below(4) == 0) b_.set_scope(Concat("block", Below(3)));
      b_.At({"random.cc", 1 + i});
      AddStep();
      HT_CHECK(b_.status().ok(), "a random step is invalid");
    }
    AddRoots();
    HT_CHECK(b_.status().ok(), "a random root is invalid");
    HT_CHECK(ir::Verify(*graph_).ok(), "a random graph is invalid");
    return std::move(graph_);
  }

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(rng_.Below(static_cast<uint64_t>(n))); }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(Below(static_cast<int64_t>(from.size())))];
  }

  Shape RandomShape(int min_rank) {
    const int rank = min_rank + static_cast<int>(Below(4 - min_rank + 1));
    Ints dims;
    for (int i = 0; i < rank; ++i) dims.push_back(1 + Below(4));
    return Shape(dims);
  }

  Tensor RandomTensor(DType dtype, const Shape& shape) {
    Tensor t = Tensor::Empty(dtype, shape);
    // Eighths: exact in every float type.
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      t.set(i, static_cast<double>(Below(17) - 8) / 8);
    }
    return t;
  }

  void Keep(Expr x, double bound) {
    if (x.valid() && x.shape().num_elements() <= kMaxElements) items_.push_back({x, bound});
  }

  void AddSources() {
    const int inputs = 1 + static_cast<int>(Below(3));
    for (int i = 0; i < inputs; ++i) {
      Keep(b_.Input(Concat("x", i), {DType::kF32, RandomShape(i == 0 ? 2 : 0)}), 1);
    }
    for (int i = 0; options_.state && i < 2; ++i) {
      ir::Variable w;
      w.name = Concat("w", i);
      w.type = {DType::kF32, RandomShape(1)};
      w.kind = i == 0 ? ir::VariableKind::kParameter : ir::VariableKind::kBuffer;
      w.init = {ir::Initializer::Kind::kUniform, -1, 1};
      Keep(b_.Var(w), 1);
    }
  }

  void AddStep() {
    const Item item = Pick(items_);
    if (item.bound > kMaxBound / 64) return Keep(b_.Op("tanh", {item.x}), 1);
    switch (Below(options_.functions ? 16 : 13)) {
      case 0:
        return AddUnary(item);
      case 1:
        return AddBinary(item);
      case 2:
        return AddScalar(item);
      case 3:
        return AddSelect(item);
      case 4:
        return AddReduction(item);
      case 5:
        return AddMatmul(item);
      case 6:
        return AddReshape(item);
      case 7:
        return AddTranspose(item);
      case 8:
        return AddSlice(item);
      case 9:
        return AddConcat(item);
      case 10:
        return AddSoftmax(item);
      case 11:
        return AddCast(item);
      case 13:
      case 14:
      case 15:
        return AddFunction(item);
      default:
        return AddCopy();
    }
  }

  void AddUnary(const Item& item) {
    static const std::vector<std::string> ops = {"relu", "tanh", "sigmoid", "silu", "abs", "neg"};
    Keep(b_.Op(Pick(ops), {item.x}), item.bound + 1);
  }

  // Compositions whose values stay within about 1e-3 and 1e3 for many operands.
  void AddFunction(const Item& item) {
    const Expr x = item.x;
    const auto f = [this](const char* op, const Expr& operand) { return b_.Op(op, {operand}); };
    switch (Below(8)) {
      case 0:
        if (item.bound <= 6) Keep(f("exp", x), std::exp(item.bound));
        return;
      case 1:
        return Keep(f("log", f("sigmoid", x)), item.bound + 1);
      case 2:
        return Keep(f("log", 1.0 - f("sigmoid", x)), item.bound + 1);
      case 3:
        return Keep(1.0 - f(Below(2) == 0 ? "sigmoid" : "tanh", x), 2);
      case 4:
        return Keep(x / (f("abs", Partner(item).x) + 0.5), 2 * item.bound);
      case 5:
        if (item.bound <= 6) Keep(f("reciprocal", f("sigmoid", x)), std::exp(item.bound) + 1);
        return;
      case 6:
        return Keep(f("sqrt", f("abs", x)), std::sqrt(item.bound));
      default:
        const Expr sum = b_.Op("sum", {x * x}, {{"axes", Ints{}}});
        return Keep(x / f("sqrt", sum + 0.01), 1);
    }
  }

  // An operand that broadcasts with `item`, of its dtype.
  Item Partner(const Item& item) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const Item other = Pick(items_);
      const auto shape = BroadcastShapes(item.x.shape(), other.x.shape());
      if (other.x.dtype() == item.x.dtype() && shape.ok() &&
          shape->num_elements() <= kMaxElements) {
        return other;
      }
    }
    return {b_.Constant(RandomTensor(item.x.dtype(), item.x.shape())), 1};
  }

  void AddBinary(const Item& item) {
    static const std::vector<std::string> ops = {"add", "sub", "maximum", "minimum"};
    const Item other = Partner(item);
    if (Below(3) == 0 && item.bound * other.bound < kMaxBound) {
      return Keep(b_.Op("mul", {item.x, other.x}), item.bound * other.bound);
    }
    Keep(b_.Op(Pick(ops), {item.x, other.x}), item.bound + other.bound);
  }

  void AddScalar(const Item& item) {
    // 1 and 0 are what simplification looks for.
    static const std::vector<double> scalars = {0, 1, -1, 0.5, 2};
    const double s = Pick(scalars);
    if (Below(2) == 0) return Keep(item.x * s, item.bound * 2);
    Keep(Below(2) == 0 ? item.x + s : s - item.x, item.bound + 2);
  }

  void AddSelect(const Item& item) {
    static const std::vector<std::string> ops = {"less", "greater_equal", "equal"};
    const Item other = Partner(item);
    const Expr condition = b_.Op(Pick(ops), {item.x, other.x});
    Keep(b_.Op("where", {condition, item.x, other.x}), std::max(item.bound, other.bound));
  }

  void AddReduction(const Item& item) {
    static const std::vector<std::string> ops = {"sum", "mean", "max"};
    const std::string& op = Pick(ops);
    Ints axes;
    for (int axis = 0; axis < item.x.shape().rank(); ++axis) {
      if (Below(2) == 0) axes.push_back(axis);
    }
    const double n = static_cast<double>(item.x.shape().num_elements());
    if (op == "sum" && item.bound * n > kMaxBound) return;
    Keep(b_.Op(op, {item.x}, {{"axes", axes}, {"keepdim", Below(2) == 0}}),
         op == "sum" ? item.bound * n : item.bound);
  }

  void AddMatmul(const Item& item) {
    const Shape& shape = item.x.shape();
    if (shape.rank() < 2) return;
    const bool transpose_a = Below(2) == 0, transpose_b = Below(2) == 0;
    const int64_t k = shape[shape.rank() - (transpose_a ? 2 : 1)], n = 1 + Below(4);
    const Expr weight =
        b_.Constant(RandomTensor(item.x.dtype(), transpose_b ? Shape{n, k} : Shape{k, n}));
    Keep(b_.Op("matmul", {item.x, weight},
               {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}),
         item.bound * static_cast<double>(k));
  }

  void AddReshape(const Item& item) {
    const int64_t n = item.x.shape().num_elements();
    Ints dims = {n};
    for (int64_t factor : {2, 3}) {
      if (n % factor == 0 && Below(2) == 0) dims = {factor, n / factor};
    }
    if (Below(2) == 0) dims.push_back(1);
    Keep(b_.Op("reshape", {item.x}, {{"shape", dims}}), item.bound);
  }

  void AddTranspose(const Item& item) {
    Ints perm(static_cast<size_t>(item.x.shape().rank()));
    std::iota(perm.begin(), perm.end(), 0);
    for (size_t i = perm.size(); i > 1; --i) {
      std::swap(perm[i - 1], perm[static_cast<size_t>(Below(static_cast<int64_t>(i)))]);
    }
    Keep(b_.Op("transpose", {item.x}, {{"perm", perm}}), item.bound);
  }

  void AddSlice(const Item& item) {
    Ints starts, limits, strides;
    for (int64_t dim : item.x.shape().dims()) {
      starts.push_back(Below(dim));
      limits.push_back(starts.back() + 1 + Below(dim - starts.back()));
      strides.push_back(1 + Below(2));
    }
    Keep(b_.Op("slice", {item.x}, {{"starts", starts}, {"limits", limits}, {"strides", strides}}),
         item.bound);
  }

  void AddConcat(const Item& item) {
    const int rank = item.x.shape().rank();
    if (rank == 0) return;
    const Expr other = b_.Constant(RandomTensor(item.x.dtype(), item.x.shape()));
    Keep(b_.Op("concat", {item.x, other, item.x}, {{"axis", Below(2 * rank) - rank}}),
         std::max(item.bound, 1.0));
  }

  void AddSoftmax(const Item& item) {
    if (item.x.shape().rank() == 0) return;
    Keep(b_.Op("softmax", {item.x}, {{"axis", int64_t{-1}}}), 1);
  }

  void AddCast(const Item& item) {
    static const std::vector<DType> dtypes = {DType::kF32, DType::kBF16, DType::kF16, DType::kF64};
    if (!options_.casts) return AddUnary(item);
    Keep(b_.Cast(item.x, Pick(dtypes)), item.bound);
  }

  // The same node once more.
  void AddCopy() {
    const Item item = Pick(items_);
    const ir::Node& node = *item.x.value().node;
    if (node.num_inputs() == 0) return;
    std::vector<Expr> inputs;
    for (const ir::Value& input : node.inputs()) inputs.push_back(b_.Wrap(input));
    Keep(b_.Op(node.op().name, inputs, node.attrs()), item.bound);
  }

  void AddRoots() {
    graph_->outputs().push_back({"", items_.back().x.value()});
    graph_->outputs().push_back({"second", Pick(items_).x.value()});
    const std::vector<ir::Variable> variables = graph_->variables();
    for (const ir::Variable& variable : variables) {
      for (size_t i = items_.size(); i-- > 0;) {
        const Expr& x = items_[i].x;
        if (!(x.type() == variable.type) || x.value().node->num_inputs() == 0) continue;
        b_.Commit(variable.name, x);
        break;
      }
    }
  }

  PhiloxStream rng_;
  const RandomGraphOptions options_;
  std::unique_ptr<ir::Graph> graph_;
  ir::Builder b_;
  std::vector<Item> items_;
};

}  // namespace

std::unique_ptr<ir::Graph> RandomGraph(uint64_t seed, const RandomGraphOptions& options) {
  return Generator(seed, options).Run();
}

}  // namespace halftone::testing
