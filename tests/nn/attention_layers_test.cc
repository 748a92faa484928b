// MultiheadAttention and TransformerEncoderLayer beside PyTorch's numbers; their parameters, and
// what they refuse.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ((i step + offset) mod 11 - 5) / 4 times `factor`.
Tensor Pattern(const Shape& shape, int64_t step, int64_t offset, double factor = 1) {
  Tensor t = Tensor::Empty(DType::kF32, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.set(i, factor * static_cast<double>((i * step + offset) % 11 - 5) / 4);
  }
  return t;
}

// Parameter i becomes a pattern of step 3, 5, 7 or 9 and offset i.
void Fill(Module& module) {
  runtime::StateDict state;
  int64_t i = 0;
  for (const auto& [name, parameter] : module.named_parameters()) {
    state[name] = Pattern(parameter.shape(), 3 + 2 * (i % 4), i, 0.5);
    ++i;
  }
  const auto report = module.load_state_dict(state);
  ASSERT_TRUE(report.ok()) << Message(report.status());
}

std::vector<std::string> Names(const Module& module) {
  std::vector<std::string> names;
  for (const auto& entry : module.named_parameters()) names.push_back(entry.first);
  return names;
}

void ExpectAll(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-6) << i;
}

// The literals: PyTorch 2.15 in f64, rounded to 9 digits.

TEST(MultiheadAttention, IsPyTorchs) {
  MultiheadAttention attention(4, 2);
  Fill(attention);
  FnGraph graph([&](const Values& in) -> Values {
    return {attention({in[0], in[1], in[2], in[3]})[0], attention(in[1])};
  });
  graph.add_module("attention", attention);
  const auto out =
      Call(graph, {Pattern({2, 1, 4}, 7, 0), Pattern({3, 1, 4}, 3, 1), Pattern({3, 1, 4}, 4, 2),
                   Tensor::Of(DType::kBool, {2, 3}, {0, 1, 0, 0, 0, 1})});
  ASSERT_EQ(out.size(), 2u);
  ExpectAll(out[0].ToVector(), {-0.620612833, -0.178578248, -0.02981491, 0.412219674, -0.479647534,
                                -0.57215916, 0.444384733, 0.351873107});
  ExpectAll(out[1].ToVector(),
            {-0.679027791, -0.273399201, -0.007703185, 0.397925405, -0.542753369, -0.227000012,
             0.140628582, 0.456381939, -0.547897623, -0.227206609, 0.138861717, 0.459552731});
}

// The same sequence as [L,N,E], as [N,L,E] and without a batch; and a mask for each head.
TEST(MultiheadAttention, Layouts) {
  MultiheadAttention sequence_first(4, 2), batch_first(4, 2, {.batch_first = true});
  Fill(sequence_first);
  Fill(batch_first);
  FnGraph graph([&](const Values& in) -> Values {
    const Value x = in[0], alone = reshape(x, {3, 4}), first = reshape(x, {1, 3, 4});
    const Value mask = reshape(in[1], {2, 3, 3});
    return {sequence_first(x), batch_first(first), batch_first(alone),
            batch_first({first, first, first, mask})[0]};
  });
  graph.add_module("sequence_first", sequence_first);
  graph.add_module("batch_first", batch_first);
  const auto out = Call(graph, {Pattern({3, 1, 4}, 3, 1), Tensor::Zeros(DType::kF32, {2, 3, 3})});
  ASSERT_EQ(out.size(), 4u);
  for (size_t i = 1; i < 4; ++i) ExpectAll(out[i].ToVector(), out[0].ToVector());
  EXPECT_EQ(out[1].shape(), (Shape{1, 3, 4}));
  EXPECT_EQ(out[2].shape(), (Shape{3, 4}));
}

// The first position sees itself alone: what it gives does not depend on the others.
TEST(MultiheadAttention, Causal) {
  MultiheadAttention attention(4, 2, {.batch_first = true, .is_causal = true});
  FnGraph graph([&](const Values& in) -> Values { return {attention(in[0])}; });
  graph.add_module("attention", attention);
  const auto some = Call1(graph, {Pattern({1, 3, 4}, 3, 1)});
  Tensor changed = Pattern({1, 3, 4}, 3, 1);
  for (int64_t i = 4; i < 12; ++i) changed.set(i, 9);
  const auto other = Call1(graph, {changed});
  ASSERT_EQ(some.size(), 12u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(some[i], other[i]);
  EXPECT_NE(some[4], other[4]);
}

TEST(MultiheadAttention, ParametersArePyTorchs) {
  MultiheadAttention attention(64, 4);
  EXPECT_THAT(Names(attention),
              ElementsAre("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"));
  EXPECT_THAT(Names(MultiheadAttention(4, 2, {.bias = false})),
              ElementsAre("in_proj_weight", "out_proj.weight"));
  const auto state = attention.state_dict();
  ASSERT_TRUE(state.ok());
  const auto largest = [&](const char* name) {
    double most = 0;
    for (double v : state->at(name).ToVector()) most = std::max(most, std::abs(v));
    return most;
  };
  const double xavier = std::sqrt(6.0 / (4 * 64)), usual = 1 / std::sqrt(64.0);
  EXPECT_LE(largest("in_proj_weight"), xavier);
  EXPECT_GT(largest("in_proj_weight"), 0.99 * xavier);
  EXPECT_LE(largest("out_proj.weight"), usual);
  EXPECT_GT(largest("out_proj.weight"), 0.99 * usual);
  EXPECT_EQ(largest("in_proj_bias"), 0);
  EXPECT_EQ(largest("out_proj.bias"), 0);
}

TEST(MultiheadAttention, Errors) {
  EXPECT_THAT(Message(MultiheadAttention(6, 4).status()),
              HasSubstr("num_heads is 4; expected a divisor of 6, embed_dim"));
  EXPECT_THAT(Message(MultiheadAttention(4, 2, {.dropout = 1.0}).status()),
              HasSubstr("dropout is 1; expected 0 <= dropout < 1"));
  EXPECT_THAT(Message(MultiheadAttention(0, 4).status()),
              HasSubstr("embed_dim is 0; expected at least 1"));
  MultiheadAttention attention(4, 2);
  FnGraph graph([&](const Values& in) -> Values { return {attention(in[0])}; });
  graph.add_module("attention", attention);
  EXPECT_THAT(Message(CallStatus(graph, {Tensor::Zeros(DType::kF32, {2, 3, 5})})),
              HasSubstr("query has shape [2,3,5]; expected [L,N,4] or [L,4]"));
  FnGraph two([&](const Values& in) -> Values { return attention({in[0], in[0]}); });
  two.add_module("attention", attention);
  EXPECT_THAT(Message(CallStatus(two, {Tensor::Zeros(DType::kF32, {2, 3, 4})})),
              HasSubstr("got 2 values; expected query, key, value and perhaps a mask"));
}

TEST(TransformerEncoderLayer, IsPyTorchs) {
  TransformerEncoderLayer layer(
      4, 2, {.dim_feedforward = 3, .dropout = 0, .activation = "gelu", .batch_first = true});
  TransformerEncoderLayer norm_first(4, 2,
                                     {.dim_feedforward = 3, .dropout = 0, .norm_first = true});
  Fill(layer);
  Fill(norm_first);
  FnGraph graph([&](const Values& in) -> Values {
    return {layer(in[0]), norm_first(in[1]), layer({in[0], in[2]})[0]};
  });
  graph.add_module("layer", layer);
  graph.add_module("norm_first", norm_first);
  const auto out = Call(graph, {Pattern({1, 3, 4}, 3, 1), Pattern({3, 1, 4}, 3, 1),
                                Tensor::Zeros(DType::kBool, {3, 3})});
  ASSERT_EQ(out.size(), 3u);
  const std::vector<double> want = {0.252795208, 0.511609449, 0.279619745, -0.709180968,
                                    0.44743338,  0.43315911,  0.400414876, -0.390029975,
                                    0.447334712, 0.432955976, 0.399634883, -0.390178494};
  ExpectAll(out[0].ToVector(), want);
  ExpectAll(out[1].ToVector(),
            {-1.218052929, -1.232493678, 0.479533469, 1.394863286, -1.015234472, -1.129345778,
             0.484001574, -0.823776469, -0.765234472, -0.879345778, 0.734001574, -0.573776469});
  ExpectAll(out[2].ToVector(), want);  // a mask that forbids nothing
}

TEST(TransformerEncoderLayer, Errors) {
  EXPECT_THAT(Message(TransformerEncoderLayer(4, 2, {.activation = "tanh"}).status()),
              HasSubstr("activation is \"tanh\"; expected \"relu\" or \"gelu\""));
}

}  // namespace
}  // namespace halftone::nn
