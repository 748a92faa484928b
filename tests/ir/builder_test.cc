#include "halftone/graph/ir/builder.h"

#include <gtest/gtest.h>

#include "halftone/graph/ir/verify.h"
#include "halftone/tests/ir/test_ops.h"

namespace halftone::ir {
namespace {

class BuilderTest : public ::testing::Test {
 protected:
  BuilderTest() { RegisterTestOps(); }
  // Status of a builder after `make`, called at model.cc:42 with an f32[2] and an i64[3].
  template <typename Make>
  static absl::Status After(Make make) {
    Graph graph;
    Builder b(&graph);
    b.At({"model.cc", 42});
    const Expr x = b.Input("x", {DType::kF32, Shape{2}});
    const Expr i = b.Input("i", {DType::kI64, Shape{3}});
    make(b, x, i);
    return b.status();
  }
  static void ExpectError(const absl::Status& status, absl::StatusCode code,
                          const std::string& message) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(Message(status), "model.cc:42: " + message);
  }

  Graph graph_;
  Builder b_{&graph_};
};

TEST_F(BuilderTest, InfersTypesAndFillsInDefaults) {
  const Expr x = b_.Input("x", {DType::kF32, Shape{2}});
  const Expr y = b_.Op("test_mix", {x, x}, {{"k", int64_t{3}}});
  EXPECT_EQ(y.type().ToString(), "f32[2]");
  const Expr t = b_.Op("test_attrs", {}, {{"f", int64_t{2}}});  // an int serves as a float
  EXPECT_EQ(t.value().node->attrs().GetFloat("f"), 2.0);
  EXPECT_EQ(t.value().node->attrs().GetInt("i"), 7);
  EXPECT_TRUE(b_.status().ok()) << b_.status();
  EXPECT_TRUE(Verify(graph_).ok()) << Verify(graph_);
}

TEST_F(BuilderTest, NodesCarryWhereTheyComeFrom) {
  b_.At({"model.cc", 7});
  b_.set_scope("encoder/fc1");
  b_.set_provenance({"autodiff", "matmul_3"});
  b_.set_amp_request(-1);
  b_.NameNext("first");
  const Expr x = b_.Input("x", {DType::kF32, Shape{2}});
  const Expr y = b_.Op("test_pass", {x});
  EXPECT_EQ(x.value().node->name(), "first");  // the hint is for one node only
  EXPECT_EQ(y.value().node->name(), "test_pass");
  const Node& node = *y.value().node;
  EXPECT_EQ(node.path(), "encoder/fc1/test_pass");
  EXPECT_EQ(node.location.ToString(), "model.cc:7");
  EXPECT_EQ(node.provenance.pass, "autodiff");
  EXPECT_EQ(node.provenance.from, "matmul_3");
  EXPECT_EQ(node.amp_request, -1);
  EXPECT_EQ(node.Label(), "test_pass(%test_pass)");
}

TEST_F(BuilderTest, TheFirstErrorSticksAndTheRestIsPoison) {
  const Expr x = b_.Input("x", {DType::kF32, Shape{2}});
  const Expr bad = b_.Op("test_mix", {x}, {{"k", int64_t{1}}});
  const std::string first = Message(b_.status());
  const size_t nodes = graph_.nodes().size();
  EXPECT_FALSE(bad.valid());
  EXPECT_FALSE((bad + x).valid());
  EXPECT_FALSE((2.0 * bad).valid());
  EXPECT_FALSE((-bad).valid());
  EXPECT_FALSE(b_.Cast(bad, DType::kF64).valid());
  EXPECT_FALSE(b_.Input("z", {DType::kF32, Shape{2}}).valid());
  EXPECT_EQ(b_.Make("test_two", {bad}).size(), 2u);
  EXPECT_EQ(b_.Make("test_many", {bad, bad, bad}).size(), 3u);
  EXPECT_EQ(b_.Make("no_such_op", {}).size(), 1u);
  EXPECT_EQ(b_.Root("test_root", {}), nullptr);
  b_.Commit("w", bad);
  EXPECT_EQ(Message(b_.status()), first);
  EXPECT_EQ(graph_.nodes().size(), nodes);
}

TEST_F(BuilderTest, PoisonOfNoBuilderStaysPoison) {
  EXPECT_FALSE((Expr() + Expr()).valid());
  EXPECT_FALSE((Expr() * 2.0).valid());
  EXPECT_FALSE((-Expr()).valid());
}

TEST_F(BuilderTest, ErrorsNameTheUsersLineOpValueGotAndExpected) {
  ExpectError(After([](Builder& b, Expr, Expr) { b.Op("relux", {}); }), absl::StatusCode::kNotFound,
              "relux: no such op");
  ExpectError(After([](Builder& b, Expr x, Expr) { b.Op("test_mix", {x}); }),
              absl::StatusCode::kInvalidArgument, "test_mix: attribute k is absent; expected int");
  ExpectError(After([](Builder& b, Expr x, Expr) {
                b.Op("test_mix", {x}, {{"k", int64_t{1}}});
              }),
              absl::StatusCode::kInvalidArgument,
              "test_mix: got 1 input; expected 2 to 3 (a, b, c)");
  ExpectError(After([](Builder& b, Expr x, Expr) {
                b.Op("test_mix", {x, x, x}, {{"k", int64_t{1}}});
              }),
              absl::StatusCode::kInvalidArgument, "test_mix: input 2 (c) is f32[2]; expected i64");
  ExpectError(After([](Builder& b, Expr x, Expr) {
                b.Op("test_pass", {x}, {{"k", true}});
              }),
              absl::StatusCode::kInvalidArgument,
              "test_pass: has no attribute \"k\"; expected none");
  ExpectError(After([](Builder& b, Expr x, Expr) {
                b.NameNext("h");
                b.Op("test_mix", {x, x}, {{"k", std::string("1")}});
              }),
              absl::StatusCode::kInvalidArgument,
              "test_mix(%h): attribute k is string \"1\"; expected int");
  ExpectError(After([](Builder& b, Expr x, Expr) {
                b.Op("test_pass", {b.Wrap(Value{})});
                (void)x;
              }),
              absl::StatusCode::kInvalidArgument, "test_pass: input 0 (x) is not a value");
  ExpectError(After([](Builder& b, Expr x, Expr) {
                b.Op("test_pass", {b.Wrap(Value{x.value().node, 1})});
              }),
              absl::StatusCode::kInvalidArgument,
              "test_pass: input 0 (x) is output 1 of input(%x), which has 1");
  ExpectError(After([](Builder& b, Expr, Expr) {
                Graph other("other");
                Builder o(&other);
                b.Op("test_pass", {o.Scalar(DType::kF32, 1)});
              }),
              absl::StatusCode::kInvalidArgument,
              "test_pass: input 0 (x) = %constant belongs to graph @other; "
              "expected a value of @graph");
  ExpectError(After([](Builder& b, Expr, Expr) { b.Constant(Tensor()); }),
              absl::StatusCode::kInvalidArgument,
              "constant: attribute value is tensor undefined; expected tensor");
  ExpectError(After([](Builder& b, Expr, Expr) {
                b.Input("", {DType::kF32, Shape{}});
              }),
              absl::StatusCode::kInvalidArgument,
              "input: attribute name is empty; expected a name");
}

Variable W(DType dtype = DType::kF32) {
  Variable w;
  w.name = "fc.weight";
  w.type = {dtype, Shape{2}};
  return w;
}

TEST_F(BuilderTest, VariablesAreDeclaredOnce) {
  const Expr w = b_.Var(W());
  EXPECT_EQ(w.value().node->name(), "fc.weight");
  EXPECT_EQ(b_.Var(W()).value(), w.value());
  ASSERT_EQ(graph_.variables().size(), 1u);
  EXPECT_EQ(graph_.nodes().size(), 1u);
  EXPECT_TRUE(Verify(graph_).ok()) << Verify(graph_);

  b_.Var(W(DType::kF64));
  EXPECT_EQ(Message(b_.status()),
            "variable \"fc.weight\" is declared again as f64[2] parameter constant(0); "
            "it is f32[2] parameter constant(0)");
}

TEST_F(BuilderTest, AVariableThatLostItsNodeGetsANewOne) {
  Node* first = b_.Var(W()).value().node;
  graph_.Remove({first});
  EXPECT_TRUE(b_.Var(W()).valid());
  EXPECT_EQ(graph_.variables().size(), 1u);
  EXPECT_TRUE(Verify(graph_).ok()) << Verify(graph_);
}

TEST_F(BuilderTest, AConstantLikeNothing) {
  ExpectError(After([](Builder& b, Expr, Expr) { b.ScalarLike(Expr(), 2.5); }),
              absl::StatusCode::kInvalidArgument,
              "constant 2.5: the value it should be like is not a value");
}

TEST_F(BuilderTest, CommitErrors) {
  ExpectError(After([](Builder& b, Expr x, Expr) { b.Commit("w", x); }),
              absl::StatusCode::kNotFound, "commit \"w\": no such variable");
  ExpectError(After([](Builder& b, Expr, Expr i) {
                b.Var(W());
                b.Commit("fc.weight", i);
              }),
              absl::StatusCode::kInvalidArgument,
              "commit \"fc.weight\": value %i is i64[3]; expected f32[2]");
  ExpectError(After([](Builder& b, Expr x, Expr) {
                b.Var(W());
                b.Commit("fc.weight", x);
                b.Commit("fc.weight", x);
              }),
              absl::StatusCode::kAlreadyExists,
              "commit \"fc.weight\": the variable has a commit already");
}

TEST_F(BuilderTest, OperatorsMakeTheOpsOfTheFormula) {
  const Expr x = b_.Input("x", {DType::kBF16, Shape{2}});
  const Expr quotient = (1.0 - x) * x / 2.0;
  const Expr y = quotient + (-x);
  graph_.outputs().push_back({"", y.value()});
  EXPECT_EQ(graph_.ToString(), R"(graph @graph(%x: bf16[2]) {
  %constant = constant {value=dense<bf16[]>(1)} : bf16[]
  %sub = sub(%constant, %x) : bf16[2]
  %mul = mul(%sub, %x) : bf16[2]
  %constant_1 = constant {value=dense<bf16[]>(2)} : bf16[]
  %div = div(%mul, %constant_1) : bf16[2]
  %neg = neg(%x) : bf16[2]
  %add = add(%div, %neg) : bf16[2]
  return %add
}
)");
}

TEST_F(BuilderTest, CastToTheSameDTypeIsTheValueItself) {
  const Expr x = b_.Input("x", {DType::kF32, Shape{2}});
  EXPECT_EQ(b_.Cast(x, DType::kF32).value(), x.value());
  EXPECT_EQ(b_.Cast(x, DType::kBF16).dtype(), DType::kBF16);
}

TEST_F(BuilderTest, GradientsThatDoNotArriveAreZeros) {
  const Expr x = b_.Input("x", {DType::kF32, Shape{2}});
  const std::vector<Expr> two = b_.Make("test_two", {x});
  GradContext ctx{b_, *two[0].value().node, {x, Expr()}, {true}, {Expr()}};
  EXPECT_EQ(ctx.dy(0).value(), x.value());
  const Expr zero = ctx.dy(1);
  EXPECT_EQ(zero.type().ToString(), "f32[2]");
  EXPECT_EQ(zero.value().node->attrs().Get<Tensor>("value").ToVector(),
            (std::vector<double>{0, 0}));
  EXPECT_FALSE(ctx.has_dy(1));
}

}  // namespace
}  // namespace halftone::ir
