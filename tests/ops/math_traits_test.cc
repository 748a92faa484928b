// Refinements of AMP classes of elementwise ops and reductions, each with a twin that does not
// fire; and what the classes are.
#include <gtest/gtest.h>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/text.h"

namespace halftone::testing {
namespace {

// "class: reason" of the refinement of node `name`, "" if its class stays.
std::string Refined(const std::string& text, const std::string& name, DType low = DType::kF16) {
  const auto graph = ir::Parse(text);
  if (!graph.ok()) return Message(graph.status());
  const ir::Node* node = (*graph)->FindNode(name);
  const auto refinement = node->op().amp.refine(*node, low);
  return refinement ? Concat(ir::Name(refinement->amp_class), ": ", refinement->reason) : "";
}

TEST(MulTrait, ASquareIsDeniedInF16) {
  const std::string square = R"(graph @g(%x: f32[2], %y: f32[2]) {
    %s = mul(%x, %x)
    return %s
  })";
  EXPECT_EQ(Refined(square, "s"), "deny: a square: values above 256 overflow f16");
  EXPECT_EQ(Refined(square, "s", DType::kBF16), "");
  EXPECT_EQ(Refined(R"(graph @g(%x: f32[2], %y: f32[2]) {
    %s = mul(%x, %y)
    return %s
  })",
                    "s"),
            "");
}

// Of a node all of whose operands are of unknown size: "1: reason", with "(pole)" at one; "" if it
// enlarges no rounding.
std::string Magnified(const std::string& text, const std::string& name, DType low) {
  const auto graph = ir::Parse(text);
  if (!graph.ok()) return Message(graph.status());
  const ir::Node* node = (*graph)->FindNode(name);
  const std::vector<ir::ValueRange> unknown(static_cast<size_t>(node->num_inputs()));
  const auto magnified = node->op().amp.magnifies(*node, low, unknown);
  if (!magnified) return "";
  return Concat(magnified->inputs.at(0), ": ", magnified->reason, magnified->pole ? " (pole)" : "");
}

TEST(DivTrait, ADivisorMadeOfASumIsMagnified) {
  // Seen through ops that only move values, and through arithmetic.
  const std::string by_mean = R"(graph @g(%x: f32[2,3]) {
    %m = mean(%x) {axes=[1], keepdim=true}
    %b = broadcast_to(%m) {shape=[2,3]}
    %s = sqrt(%b)
    %q = div(%x, %s)
    return %q
  })";
  EXPECT_EQ(Magnified(by_mean, "q", DType::kBF16),
            "1: divides by the result of mean(%m), which may be large or vanish");
  EXPECT_EQ(Magnified(by_mean, "q", DType::kF16),
            "1: divides by the result of mean(%m), which may be large or vanish (pole)");
  EXPECT_EQ(Magnified(R"(graph @g(%x: f32[2,3]) {
    %e = exp(%x)
    %q = div(%x, %e)
    return %q
  })",
                      "q", DType::kBF16),
            "1: divides by the result of exp(%e), which may be large or vanish");
}

TEST(DivTrait, OtherDivisorsAreMagnifiedInF16) {
  for (const char* text :
       {"graph @g(%x: f32[2,3], %d: f32[2,3]) { %q = div(%x, %d) return %q }",
        "graph @g(%x: f32[2,3]) { %s = sigmoid(%x) %q = div(%x, %s) return %q }"}) {
    EXPECT_EQ(Magnified(text, "q", DType::kF16),
              "1: divides by what may be near 0, where f16 has few digits or none (pole)");
    EXPECT_EQ(Magnified(text, "q", DType::kBF16), "");
  }
}

TEST(MeanTrait, IsDeniedAsTheLoss) {
  const std::string denied = "deny: is the loss or a reported number";
  EXPECT_EQ(Refined(R"(graph @g(%x: f32[2,3]) {
    %m = mean(%x) {axes=[]}
    %l = neg(%m)
    backward(%l)
    return %x
  })",
                    "m"),
            denied);
  EXPECT_EQ(Refined(R"(graph @g(%x: f32[2,3]) {
    %m = mean(%x) {axes=[]}
    return %m
  })",
                    "m"),
            denied);
}

TEST(MeanTrait, StaysInTheTrunk) {
  // Several elements; and one element that is then spread over activations.
  EXPECT_EQ(Refined(R"(graph @g(%x: f32[2,3]) {
    %m = mean(%x) {axes=[1]}
    return %m
  })",
                    "m"),
            "");
  EXPECT_EQ(Refined(R"(graph @g(%x: f32[2,3]) {
    %m = mean(%x) {axes=[]}
    %y = sub(%x, %m)
    return %y
  })",
                    "m"),
            "");
}

struct Classes {
  const char* op;
  ir::AmpClass f16, bf16;
};

// amp_reference: exact ops are clear, ranges are denied, bf16 has f32's range.
TEST(MathTraits, ClassesPerLowType) {
  using enum ir::AmpClass;
  for (const Classes& c : std::initializer_list<Classes>{{"relu", kClear, kClear},
                                                         {"gelu", kInfer, kInfer},
                                                         {"exp", kDeny, kDeny},
                                                         {"log", kDeny, kDeny},
                                                         {"reciprocal", kDeny, kInfer},
                                                         {"sqrt", kInfer, kInfer},
                                                         {"pow", kDeny, kDeny},
                                                         {"add", kInfer, kInfer},
                                                         {"maximum", kClear, kClear},
                                                         {"sum", kDeny, kInfer},
                                                         {"sum_to_shape", kInfer, kInfer},
                                                         {"mean", kInfer, kInfer},
                                                         {"max", kClear, kClear},
                                                         {"where", kClear, kClear},
                                                         {"concat", kClear, kClear},
                                                         {"embedding", kClear, kClear}}) {
    const ir::AmpTrait& amp = ir::OpRegistry::Global().Find(c.op)->amp;
    EXPECT_EQ(amp.f16, c.f16) << c.op;
    EXPECT_EQ(amp.bf16, c.bf16) << c.op;
  }
}

}  // namespace
}  // namespace halftone::testing
