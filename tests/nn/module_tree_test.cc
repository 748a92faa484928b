// Modules that are more than forward(x): several inputs and outputs, functions of any name. Scopes,
// wishes for precision and modes reach what they call.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Two heads on one input, called by a function that is not forward().
class TwoHeads : public Module {
 public:
  TwoHeads() {
    register_module("a", a);
    register_module("b", b);
  }
  std::pair<Value, Value> Heads(const Value& x) { return {a(x), b(x)}; }
  Linear a{16, 16}, b{16, 16};
};

// Wish and scope of every op of a compiled step.
struct Traced {
  explicit Traced(FnGraph& graph,
                  const std::vector<Tensor>& in = {Tensor::Zeros(DType::kF32, {16, 16})}) {
    graph.config.enable_amp(true, {.dtype = DType::kBF16});
    const absl::Status status = graph.compile(in);
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return;
    for (const auto& node : graph.compiled_graph()->nodes()) {
      if (node->op().name == "cast" || node->op().name == "variable") continue;
      wishes[node->path()] = node->amp_request;
      dtypes[node->path()] = node->num_outputs() > 0 ? node->output_type().dtype : DType::kBool;
    }
  }
  std::map<std::string, int8_t> wishes;
  std::map<std::string, DType> dtypes;
};

TEST(ModuleTree, F18KeepFp32ReachesWhatAnyFunctionCalls) {
  TwoHeads two;
  FnGraph graph([&](const Values& in) -> Values {
    const auto [first, second] = two.Heads(in[0]);
    return {first, second};
  });
  graph.add_module("two", two);
  two.keep_fp32();
  const Traced traced(graph);
  EXPECT_EQ(traced.dtypes.at("two/a/linear"), DType::kF32);
  EXPECT_EQ(traced.wishes.at("two/a/linear"), -1);
  EXPECT_EQ(traced.wishes.at("two/b/linear_1"), -1);
}

// A module with one in it.
class Around : public Module {
 public:
  Around() { register_module("two", two); }
  TwoHeads two;
};

TEST(ModuleTree, AWishComesFromAnyModuleAround) {
  Around around;
  FnGraph graph([&](const Values& in) -> Values { return {around.two.a(in[0])}; });
  graph.add_module("around", around);
  around.keep_fp32();
  EXPECT_EQ(Traced(graph).wishes.at("around/two/a/linear"), -1);
}

TEST(ModuleTree, TheNearestWishCounts) {
  Around around;
  FnGraph graph([&](const Values& in) -> Values {
    return {around.two.a(in[0]), around.two.b(in[0])};
  });
  graph.add_module("around", around);
  around.keep_fp32();
  around.two.allow_low();
  around.two.b.keep_fp32();
  const Traced traced(graph);
  EXPECT_EQ(traced.wishes.at("around/two/a/linear"), 1);
  EXPECT_EQ(traced.wishes.at("around/two/b/linear_1"), -1);
}

TEST(ModuleTree, AScopeInsideForwardIsNearerThanTheModule) {
  class Scoped : public Module {
   public:
    Scoped() { register_module("fc", fc); }
    Value forward(const Value& x) override {
      const Value y = fc(x);
      const KeepFp32 scope;
      return fc(y);
    }
    Linear fc{16, 16};
  };
  Scoped scoped;
  FnGraph graph([&](const Values& in) -> Values { return {scoped(in[0])}; });
  graph.add_module("scoped", scoped);
  scoped.allow_low();
  const Traced traced(graph);
  EXPECT_EQ(traced.wishes.at("scoped/fc/linear"), 1);
  EXPECT_EQ(traced.wishes.at("scoped/fc/linear_1"), -1);
}

TEST(ModuleTree, AModuleInTwoOthersObeysWhicheverHasAWish) {
  class Holder : public Module {
   public:
    explicit Holder(Linear& fc) : fc_(fc) { register_module("fc", fc); }
    Value Apply(const Value& x) { return fc_(x); }

   private:
    Linear& fc_;
  };
  Linear fc(16, 16);
  Holder first(fc), second(fc);
  FnGraph graph([&](const Values& in) -> Values { return {second.Apply(in[0])}; });
  graph.add_module("first", first);
  graph.add_module("second", second);
  second.keep_fp32();
  EXPECT_EQ(Traced(graph).wishes.at("first/fc/linear"), -1);
  first.allow_low();
  EXPECT_EQ(Traced(graph).wishes.at("first/fc/linear"), -1) << "f32 is the safe side";
}

// Ops of its own in a function of its own.
class Product : public Module {
 public:
  Product() {
    register_module("a", a);
    register_parameter("scale", scale);
  }
  Value Open(const Value& x) { return a(x) * scale; }
  Value Scoped(const Value& x, const Value& y) {
    const ModuleScope scope(*this);
    return dropout(a(x) * scale + y, 0.5);
  }
  Linear a{16, 16};
  Parameter scale{Shape{16}, {ir::Initializer::Kind::kConstant, 1, 0}};
};

TEST(ModuleScope, GivesOwnOpsPathWishAndMode) {
  Product product;
  FnGraph graph([&](const Values& in) -> Values { return {product.Scoped(in[0], in[0])}; });
  graph.add_module("product", product);
  product.keep_fp32();
  const std::vector<Tensor> in = {Tensor::Zeros(DType::kF32, {16, 16})};
  const Traced traced(graph, in);
  EXPECT_EQ(traced.wishes.at("product/mul"), -1);
  EXPECT_EQ(traced.wishes.at("product/add"), -1);
  EXPECT_EQ(traced.wishes.at("product/a/linear"), -1);
  EXPECT_EQ(traced.wishes.count("product/dropout"), 1u);
  EXPECT_THAT(graph.notes(), Not(Contains(HasSubstr("ModuleScope"))));
  product.eval();
  EXPECT_EQ(Traced(graph, in).wishes.count("product/dropout"), 0u);
}

TEST(ModuleScope, WhereItIsMissingANoteSaysSo) {
  Product product;
  FnGraph graph([&](const Values& in) -> Values { return {product.Open(in[0])}; });
  graph.add_module("product", product);
  product.keep_fp32();
  const Traced traced(graph);
  EXPECT_EQ(traced.wishes.at("product/a/linear"), -1);
  EXPECT_EQ(traced.wishes.at("mul"), 0);
  EXPECT_THAT(graph.notes(),
              Contains("amp: keep_fp32() of module \"product\" reaches its submodules, "
                       "not ops that a function other than forward() makes itself; "
                       "expected an nn::ModuleScope in that function"));
}

TEST(ModuleScope, EndsWhereItIsClosed) {
  Product product;
  FnGraph graph([&](const Values& in) -> Values {
    Value y = in[0];
    {
      const ModuleScope scope(product);
      y = relu(y);
    }
    return {tanh(y)};
  });
  graph.add_module("product", product);
  const Traced traced(graph);
  EXPECT_EQ(traced.wishes.count("product/relu"), 1u);
  EXPECT_EQ(traced.wishes.count("tanh"), 1u);
}

TEST(ModuleScope, OutsideBuildIsHarmless) {
  Product product;
  const ModuleScope scope(product);
  EXPECT_FALSE(product.Scoped(Value(), Value()).valid());
}

// Values in, values out.
class Swap : public Module {
 public:
  Swap() { register_module("fc", fc); }
  Values forward(const Values& in) override { return {fc(in[1]), relu(in[0])}; }
  Linear fc{16, 16};
};

TEST(ModuleOfValues, IsCalledByName) {
  Swap swap;
  FnGraph graph([&](const Values& in) -> Values {
    const Values out = swap({in[0], in[1]});
    return {out[0], out[1]};
  });
  graph.add_module("swap", swap);
  const Tensor x = Tensor::Zeros(DType::kF32, {16, 16});
  const Traced traced(graph, {x, x});
  EXPECT_EQ(traced.wishes.count("swap/relu"), 1u);
  EXPECT_EQ(traced.wishes.count("swap/fc/linear"), 1u);
}

TEST(ModuleOfValues, ErrorsNameTheFormThatIsMissing) {
  Swap swap;
  FnGraph one([&](const Values& in) -> Values { return {swap(in[0])}; });
  one.add_module("swap", swap);
  EXPECT_EQ(Message(CallStatus(one, {F32({1}, {1})})),
            Concat("module_tree_test.cc:", __LINE__ - 3,
                   ": Module has no forward(x); expected a call with Values, or of one of its own "
                   "functions"));
  Linear fc(1, 1);
  FnGraph several([&](const Values& in) -> Values { return fc(in); });
  several.add_module("fc", fc);
  EXPECT_EQ(Message(CallStatus(several, {F32({1, 1}, {1})})),
            Concat("module_tree_test.cc:", __LINE__ - 3,
                   ": Linear(1, 1) has no forward(values); expected a call with one value"));
}

TEST(ModuleTree, PoliciesMatchByPathWhoeverCalls) {
  TwoHeads two;
  FnGraph graph([&](const Values& in) -> Values { return {two.a(in[0]), two.b(in[0])}; });
  graph.add_module("two", two);
  graph.config.enable_amp(true, {.dtype = DType::kBF16, .deny = {"two/a/*"}});
  ASSERT_TRUE(graph.compile({Tensor::Zeros(DType::kF32, {16, 16})}).ok());
  for (const auto& node : graph.compiled_graph()->nodes()) {
    if (node->path() != "two/a/linear") continue;
    EXPECT_EQ(node->output_type().dtype, DType::kF32);
  }
}

TEST(ModuleTree, ModesReachWhatAnyFunctionCalls) {
  class Towers : public Module {
   public:
    Towers() {
      register_module("left", left);
      register_module("right", right);
    }
    Values Both(const Value& x) { return {left(x), right(x)}; }
    Dropout left, right;
  };
  Towers towers;
  FnGraph graph([&](const Values& in) -> Values { return towers.Both(in[0]); });
  graph.add_module("towers", towers);
  towers.eval();
  towers.right.train();
  const Tensor x = Tensor::Full(DType::kF32, {64}, 1);
  const std::vector<Tensor> out = Call(graph, {x});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_TRUE(BitEqual(out[0], x));
  EXPECT_FALSE(BitEqual(out[1], x));
}

TEST(LateMembers, F55ANewParameterOfAModuleThatAGraphHas) {
  Linear fc(1, 1, {.bias = false});
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(fc(in[0]));
    loss.backward();
    return {loss};
  });
  graph.add_module("fc", fc);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  ASSERT_TRUE(fc.weight.set_value(F32({1, 1}, {2})).ok());
  EXPECT_THAT(Call1(graph, {F32({1, 1}, {1})}), ElementsAre(2));
  fc.weight = Parameter(Shape{1, 1}, {ir::Initializer::Kind::kConstant, 10, 0});
  // The name stays; what it names is the new tensor, for the optimizer and the state too.
  EXPECT_THAT(Call1(graph, {F32({1, 1}, {1})}), ElementsAre(10));
  EXPECT_EQ(fc.weight.value().item(), 9);
  EXPECT_EQ(graph.state_dict()->at("fc.weight").item(), 9);
}

}  // namespace
}  // namespace halftone::nn
