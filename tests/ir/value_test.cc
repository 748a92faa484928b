// Types, attributes, numbers as text, variables and the ops of graph/ops/structure.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "halftone/core/philox.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/number_text.h"
#include "halftone/graph/ir/text_format.h"

namespace halftone::ir {
namespace {

TEST(ValueType, TextAndBytes) {
  const ValueType type{DType::kBF16, Shape{2, 3, 4, 5}, Layout::kChannelsLast};
  EXPECT_EQ(type.ToString(), "bf16[2,3,4,5]{nhwc}");
  EXPECT_EQ((ValueType{DType::kF32, Shape{}}).ToString(), "f32[]");
  EXPECT_EQ(type.num_bytes(), 240);
  EXPECT_FALSE(type == (ValueType{DType::kBF16, Shape{2, 3, 4, 5}}));
}

TEST(ValueType, StridesFollowTheLayout) {
  const Shape shape{2, 3, 4, 5};
  const auto plain = StridesOf({DType::kF32, shape});
  EXPECT_EQ(std::vector<int64_t>(plain.begin(), plain.end()), (std::vector<int64_t>{60, 20, 5, 1}));
  const auto last = StridesOf({DType::kF32, shape, Layout::kChannelsLast});
  EXPECT_EQ(std::vector<int64_t>(last.begin(), last.end()), (std::vector<int64_t>{60, 1, 15, 3}));
}

// Element [n, c, h, w] lies at ((n 2 + c / 16) 12 + h 4 + w) 16 + c % 16.
TEST(ValueType, BlocksOfChannelsAreTwoAxes) {
  const ValueType type{DType::kF32, Shape{2, 32, 3, 4}, Layout::kChannelBlocks};
  EXPECT_EQ(type.ToString(), "f32[2,32,3,4]{nchw16c}");
  const StridedAxes axes = StridedAxesOf(type);
  EXPECT_THAT(axes.extents, ::testing::ElementsAre(2, 2, 16, 3, 4));
  EXPECT_THAT(axes.strides, ::testing::ElementsAre(384, 192, 1, 64, 16));
  const StridedAxes last = BlockAxesOf({DType::kF32, type.shape, Layout::kChannelsLast});
  EXPECT_THAT(last.extents, ::testing::ElementsAre(2, 2, 16, 3, 4));
  EXPECT_THAT(last.strides, ::testing::ElementsAre(384, 16, 1, 128, 32));
  const StridedAxes plain = StridedAxesOf({DType::kF32, type.shape});
  EXPECT_THAT(plain.extents, ::testing::ElementsAre(2, 32, 3, 4));
  EXPECT_THAT(plain.strides, ::testing::ElementsAre(384, 12, 4, 1));
  EXPECT_TRUE(CanLie(type.shape, Layout::kChannelBlocks));
  EXPECT_FALSE(CanLie(Shape{2, 24, 3, 4}, Layout::kChannelBlocks));
  EXPECT_FALSE(CanLie(Shape{2, 32, 3}, Layout::kChannelBlocks));
}

TEST(Attributes, AreSortedAndReplaced) {
  Attributes attrs{{"b", true}, {"a", int64_t{1}}};
  attrs.Set("a", int64_t{2});
  ASSERT_EQ(attrs.entries().size(), 2u);
  EXPECT_EQ(attrs.entries()[0].first, "a");
  EXPECT_EQ(attrs.GetInt("a"), 2);
  attrs.Erase("a");
  attrs.Erase("a");
  EXPECT_FALSE(attrs.Has("a"));
  EXPECT_TRUE(attrs == (Attributes{{"b", true}}));
  EXPECT_FALSE(attrs == (Attributes{{"b", false}}));
}

TEST(AttributesDeathTest, ReadingWhatIsNotThereEndsTheProgram) {
  const Attributes attrs{{"a", int64_t{1}}};
  EXPECT_DEATH(attrs.GetInt("b"), "attribute missing");
  EXPECT_DEATH(attrs.GetFloat("a"), "attribute has another type");
}

TEST(Attributes, EqualityIsOfBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(Equal(AttrValue(nan), AttrValue(nan)));
  EXPECT_FALSE(Equal(AttrValue(0.0), AttrValue(-0.0)));
  EXPECT_FALSE(Equal(AttrValue(int64_t{1}), AttrValue(1.0)));
  EXPECT_TRUE(Equal(std::vector<double>{nan}, std::vector<double>{nan}));
  EXPECT_FALSE(Equal(std::vector<double>{1}, std::vector<double>{1, 1}));
  const AttrValue t = Tensor::Of(DType::kF32, Shape{2}, {1, 2});
  EXPECT_TRUE(Equal(t, Tensor::Of(DType::kF32, Shape{2}, {1, 2})));
  EXPECT_FALSE(Equal(t, Tensor::Of(DType::kF32, Shape{2, 1}, {1, 2})));
  EXPECT_FALSE(Equal(t, Tensor::Of(DType::kI32, Shape{2}, {1, 2})));
  EXPECT_FALSE(Equal(t, Tensor::Of(DType::kF32, Shape{2}, {1, 3})));
}

TEST(NumberText, DoublesReadBackToTheSameBits) {
  PhiloxStream rng(1);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = (uint64_t{rng.NextWord()} << 32) | rng.NextWord();
    double x = 0, back = 0;
    std::memcpy(&x, &bits, sizeof x);
    ASSERT_TRUE(ParseElement(FormatDouble(x), DType::kF64, &back, 0).ok()) << FormatDouble(x);
    ASSERT_EQ(std::memcmp(&x, &back, sizeof x), 0) << FormatDouble(x);
  }
}

TEST(NumberText, FloatsReadBackToTheSameBits) {
  PhiloxStream rng(2);
  for (int i = 0; i < 20000; ++i) {
    const uint32_t bits = rng.NextWord();
    uint32_t back = 0;
    const std::string text = FormatElement(&bits, DType::kF32, 0);
    ASSERT_TRUE(ParseElement(text, DType::kF32, &back, 0).ok()) << text;
    ASSERT_EQ(back, bits) << text;
  }
}

TEST(NumberText, Every16BitPatternReadsBack) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    for (uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
      const uint16_t bits = static_cast<uint16_t>(pattern);
      uint16_t back = 0;
      const std::string text = FormatElement(&bits, dtype, 0);
      ASSERT_TRUE(ParseElement(text, dtype, &back, 0).ok()) << text;
      ASSERT_EQ(back, bits) << Name(dtype) << " " << text;
      ASSERT_LE(text.size(), 13u) << text;
    }
  }
}

TEST(NumberText, NumbersAreTheWholeText) {
  for (const char* text : {"", "-", "1x", " 1", "1 ", "+1", "0x", "0xg", "--1", "nan1", "Inf"}) {
    EXPECT_FALSE(ParseDouble(text).ok()) << text;
  }
  EXPECT_EQ(*ParseDouble("-1e-05"), -1e-05);
  EXPECT_EQ(*ParseInt("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ParseInt("9223372036854775808").status().code(), absl::StatusCode::kOutOfRange);
  float x = 0;
  EXPECT_EQ(ParseElement("0x1ffffffff", DType::kF32, &x, 0).code(), absl::StatusCode::kOutOfRange);
}

TEST(TextFormat, QuotesAndCutsShort) {
  EXPECT_EQ(Quote("a\"b\\c\n\t\r\x01\x7f\xc3\xa9"), "\"a\\\"b\\\\c\\n\\t\\r\\x01\\x7f\xc3\xa9\"");
  EXPECT_EQ(FormatAttrBriefly(AttrValue(std::string(200, 'a'))).size(), 80u);
  EXPECT_EQ(FormatAttrBriefly(AttrValue(Tensor::Zeros(DType::kF32, Shape{9}))), "f32[9]");
  EXPECT_TRUE(IsSplat(Tensor::Full(DType::kF32, Shape{3}, 0.1)));
  EXPECT_FALSE(IsSplat(Tensor::Of(DType::kF32, Shape{2}, {0.0, -0.0})));
  EXPECT_FALSE(IsSplat(Tensor::Zeros(DType::kF32, Shape{})));
}

TEST(Initializer, TextReadsBack) {
  for (const char* text : {"constant(0)", "constant(-1e-05)", "uniform(-0.0625,0.0625)",
                           "normal(0,0.02)", "uniform(1,1)"}) {
    const auto init = Initializer::Parse(text);
    ASSERT_TRUE(init.ok()) << init.status();
    EXPECT_EQ(init->ToString(), text);
  }
  EXPECT_EQ(Initializer::Parse("normal(0,0.02)")->b, 0.02);
}

TEST(Initializer, RefusesNonsense) {
  for (const char* text :
       {"", "()", "constant", "constant()", "constant(1,2)", "uniform(1)", "uniform(1,2",
        "normal(1,2,3)", ",constant(1)", "zeros(0)", "constant(1) "}) {
    const auto init = Initializer::Parse(text);
    EXPECT_EQ(init.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(Message(Initializer::Parse("uniform(2,1)").status()),
            "initialiser uniform(2,1): expected finite bounds, lower <= upper");
  EXPECT_EQ(Message(Initializer::Parse("normal(0,-1)").status()),
            "initialiser normal(0,-1): expected a finite mean and deviation >= 0");
  EXPECT_FALSE(Initializer::Parse("normal(nan,1)").ok());
  EXPECT_FALSE(Initializer::Parse("uniform(-inf,inf)").ok());
}

TEST(Variable, AttributesReadBack) {
  Variable v;
  v.name = "bn.running_mean";
  v.type = {DType::kF64, Shape{3, 1}};
  v.kind = VariableKind::kBuffer;
  v.trainable = false;
  v.init = {Initializer::Kind::kNormal, 1, 2};
  const auto back = VariableFromAttributes(ToAttributes(v));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == v);
  for (const char* kind : {"parameter", "buffer", "optimizer", "scaler", "counter"}) {
    EXPECT_STREQ(Name(*ParseVariableKind(kind)), kind);
  }
  EXPECT_FALSE(ParseVariableKind("state").has_value());
}

TEST(Structure, ShapesOfSourcesAreBounded) {
  Graph graph;
  Builder b(&graph);
  b.Op("input", {},
       {{"name", std::string("x")}, {"dtype", DType::kF32}, {"shape", std::vector<int64_t>{-1}}});
  EXPECT_EQ(b.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(b.status()).substr(0, 7), "input: ");
}

}  // namespace
}  // namespace halftone::ir
