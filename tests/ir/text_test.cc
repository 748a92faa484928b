// Printing and parsing: what the text looks like and that it is a fixed point.
#include "halftone/graph/ir/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "halftone/graph/ir/verify.h"
#include "halftone/tests/ir/test_ops.h"

namespace halftone::ir {
namespace {

// Text in canonical form: parsing and printing gives it back.
void ExpectFixedPoint(const std::string& text, const TextOptions& options = {}) {
  const auto graph = ParseOrDie(text);
  EXPECT_EQ(Print(*graph, options), text);
  EXPECT_TRUE(Verify(*graph).ok()) << Verify(*graph);
}

TEST(Text, EmptyGraph) { ExpectFixedPoint("graph @g() {\n}\n"); }

TEST(Text, HeaderStateAndOutputs) {
  ExpectFixedPoint(R"g(graph @classifier(%x: f32[8,3], %y "the labels": i64[8]) {
  variable "old" {kind="buffer", trainable=false} : f32[8,3]
  %w = variable "fc1.weight" {init="uniform(-0.5,0.5)"} : f32[8,3]
  %h = test_pass(%x) : f32[8,3]
  commit "fc1.weight" = %h
  commit "old" = %x
  return %h, logits=%w, "a name"=%y
}
)g");
}

TEST(Text, GraphNameThatIsNoWord) { ExpectFixedPoint("graph @\"my graph\"() {\n}\n"); }

TEST(Text, SeveralOutputs) {
  ExpectFixedPoint(R"(graph @g(%x: f32[2]) {
  %a, %a#1 = test_two(%x) : f32[2], f32[2]
  %b = test_mix(%a#1, %a) {k=3} : f32[2]
  return %a#1, %b
}
)");
}

TEST(Text, OtherNamesForOutputsBecomeCanonical) {
  const auto graph = ParseOrDie(R"(graph @g(%x: f32[2]) {
  %a, %second = test_two(%x)
  %b = test_two(%second)
  return %b#1
}
)");
  EXPECT_EQ(graph->ToString(), R"(graph @g(%x: f32[2]) {
  %a, %a#1 = test_two(%x) : f32[2], f32[2]
  %b, %b#1 = test_two(%a#1) : f32[2], f32[2]
  return %b#1
}
)");
}

TEST(Text, EveryAttributeType) {
  ExpectFixedPoint(R"(graph @g() {
  %a = test_attrs() : f32[]
  %b = test_attrs() {b=true, d=bf16, f=1e-05, fs=[1, nan, -inf], i=-9223372036854775808, )"
                   R"(is=[1, -2], s="a \"q\" \\ \n\x01", ss=["", "x"], )"
                   R"(t=dense<i32[2]>(1, -2)} : f32[]
}
)");
  const auto graph = ParseOrDie("graph @g() { %b = test_attrs() {f=2, s=\"\\xe2\"} }");
  EXPECT_EQ(graph->FindNode("b")->attrs().GetFloat("f"), 2.0);
  EXPECT_EQ(graph->FindNode("b")->attrs().GetString("s"), "\xe2");
}

TEST(Text, AttributesEqualToTheDefaultAreLeftOut) {
  const auto graph = ParseOrDie("graph @g() { %b = test_attrs() {i=7, b=false} }");
  EXPECT_EQ(Print(*graph->FindNode("b")), "%b = test_attrs() : f32[]");
}

TEST(Text, Constants) {
  ExpectFixedPoint(R"(graph @g() {
  %a = constant {value=dense<f32[]>(0.1)} : f32[]
  %b = constant {value=dense<f64[3]>(0.1, -0, 1e+300)} : f64[3]
  %c = constant {value=dense<bf16[2]>(0.1, 3e+38)} : bf16[2]
  %d = constant {value=dense<f16[3]>(0.1, 65504, 6e-08)} : f16[3]
  %e = constant {value=dense<bool[2]>(true, false)} : bool[2]
  %f = constant {value=dense<u8[2]>(0, 255)} : u8[2]
  %g = constant {value=dense<i64[2]>(-9223372036854775808, 9007199254740993)} : i64[2]
  %h = constant {value=dense<f32[3]>(nan, inf, -inf)} : f32[3]
  %i = constant {value=dense<f32[2]>(0x7fc00001, 0xffc00000)} : f32[2]
  %j = constant {value=splat<f32[8,16]>(0)} : f32[8,16]
  %k = constant {value=dense<f32[0,2]>()} : f32[0,2]
}
)");
}

TEST(Text, ElementsRoundOnceFromText) {
  const auto graph = ParseOrDie(R"(graph @g() {
  %a = constant {value=dense<f32[2]>(0.1, 1e-45)}
  %b = constant {value=dense<f16[2]>(1.0009765625, 1.00048828125)}
})");
  const Tensor a = graph->FindNode("a")->attrs().Get<Tensor>("value");
  EXPECT_EQ(a.at(0), 0.1f);
  EXPECT_EQ(a.at(1), std::numeric_limits<float>::denorm_min());
  const Tensor b = graph->FindNode("b")->attrs().Get<Tensor>("value");
  EXPECT_EQ(b.at(0), 1.0009765625);  // 1 + 2^-10
  EXPECT_EQ(b.at(1), 1.0);           // 1 + 2^-11, a tie: to even
}

TEST(Text, Layouts) {
  ExpectFixedPoint(R"(graph @g(%x: f32[2,3,4,5]) {
  %a = test_pass(%x) : f32[2,3,4,5]
  return %a
}
)");
  const auto graph = ParseOrDie("graph @g(%x: f32[2,3,4,5]) {\n}\n");
  Builder b(graph.get());
  const Expr y = b.Op("test_pass", {b.Wrap(graph->inputs()[0]->output())});
  y.value().node->mutable_output_types()[0].layout = Layout::kChannelsLast;
  EXPECT_EQ(Print(*y.value().node), "%test_pass = test_pass(%x) : f32[2,3,4,5]{nhwc}");
}

TEST(Text, RootsHaveNoNameInText) {
  const std::string text = R"(graph @g(%test_root: f32[2]) {
  test_root(%test_root)
  %test_root_1 = test_pass(%test_root) : f32[2]
  test_root() {tag="t"}
}
)";
  ExpectFixedPoint(text);
  const auto graph = ParseOrDie(text);
  EXPECT_EQ(graph->nodes()[1]->name(), "test_root_2");
  EXPECT_EQ(graph->nodes()[3]->name(), "test_root_3");
}

TEST(Text, NotesAndRootNames) {
  ExpectFixedPoint(
      R"(graph @g(%x: f32[2] @"data" loc("main.cc":7)) {
  %amp = test_pass(%x) : f32[2] @"enc/fc1" loc("a b.cc":12) pass("autodiff","x") )"
      R"(recompute("enc#1 \"again\"") )"
      R"(amp(infer,bf16,"fp16: \"near\" add") keep_f32
  %r = test_root(%amp) @"enc" allow_low
  return %amp
}
)",
      TextOptions::Lossless());
}

TEST(Text, ANoteEndsWithItsLine) {
  // On the next line `@` is an error and `amp(` would be an op.
  const auto graph = Parse("graph @g(%x: f32[2]) {\n  %y = relu(%x)\n  @\"s\"\n}");
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(Message(graph.status()), "line 3, column 3: got '@'; expected an op");
}

TEST(Text, CommentsAndFreeSpacing) {
  const auto graph = ParseOrDie(R"(// what it is
graph @g(
    %x: f32[2],  // first
    %y: f32[2]) {
  %z = test_mix(%x,
                %y) {
      k = 1 }   // after
  return %z })");
  EXPECT_EQ(graph->ToString(), R"(graph @g(%x: f32[2], %y: f32[2]) {
  %z = test_mix(%x, %y) {k=1} : f32[2]
  return %z
}
)");
}

TEST(Text, KeepsOddNames) {
  ExpectFixedPoint(R"(graph @g(%0: f32[2]) {
  %1-2.x = test_pass(%0) : f32[2]
  %- = test_pass(%1-2.x) : f32[2]
  return %-
}
)");
}

}  // namespace
}  // namespace halftone::ir
