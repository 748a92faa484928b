// Elementwise functions and their gradients beside PyTorch's (2.15, in f64) at three points.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using Function = Value (*)(const Value& x);
using Doubles = std::vector<double>;

struct TorchUnaryRow {
  const char* name;
  Function f;
  Doubles x, y, dx;  // dx of sum(y)
};

#define HT_UNARY_CALL(...) [](const Value& x) { return __VA_ARGS__; }

const std::vector<TorchUnaryRow>& ElementwiseRows() {
  static const auto* const rows = new std::vector<TorchUnaryRow>{
      {"mish",
       HT_UNARY_CALL(mish(x)),
       {-2.5, -0.4, 1.7},
       {-0.19681620390653337, -0.18891648239351463, 1.6207680739755408},
       {-0.10974357275018566, 0.3475727990291042, 1.0842573159450624}},
      {"selu",
       HT_UNARY_CALL(selu(x)),
       {-2.5, -0.4, 1.7},
       {-1.6137857588732425, -0.5796101097553361, 1.7861916785043168},
       {0.1443135819741343, 1.1784892310920407, 1.0507009873554805}},
      {"softsign",
       HT_UNARY_CALL(softsign(x)),
       {-2.5, -0.4, 1.7},
       {-0.7142857142857143, -0.28571428571428575, 0.6296296296296295},
       {0.08163265306122447, 0.5102040816326531, 0.13717421124828535}},
      {"logsigmoid",
       HT_UNARY_CALL(logsigmoid(x)),
       {-2.5, -0.4, 1.7},
       {-2.5788897342925496, -0.9130152523999526, -0.16778602938626594},
       {0.9241418199787564, 0.598687660112452, 0.1544652650835347}},
      {"hardswish",
       HT_UNARY_CALL(hardswish(x)),
       {-2.5, -0.4, 1.7},
       {-0.20833333333333334, -0.17333333333333334, 1.3316666666666668},
       {-0.33333333333333337, 0.3666666666666667, 1.0666666666666667}},
      {"hardsigmoid",
       HT_UNARY_CALL(hardsigmoid(x)),
       {-2.5, -0.4, 1.7},
       {0.08333333333333333, 0.43333333333333335, 0.7833333333333333},
       {0.1666666716337204, 0.1666666716337204, 0.1666666716337204}},
      {"relu6", HT_UNARY_CALL(relu6(x)), {-2.5, -0.4, 1.7}, {0.0, 0.0, 1.7}, {0.0, 0.0, 1.0}},
      {"softplus",
       HT_UNARY_CALL(softplus(x)),
       {-2.5, -0.4, 1.7},
       {0.07888973429254963, 0.5130152523999526, 1.867786029386266},
       {0.07585818002124356, 0.401312339887548, 0.8455347349164652}},
      {"square",
       HT_UNARY_CALL(square(x)),
       {-2.5, -0.4, 1.7},
       {6.25, 0.16000000000000003, 2.8899999999999997},
       {-5.0, -0.8, 3.4}},
      {"expm1",
       HT_UNARY_CALL(expm1(x)),
       {-2.5, -0.4, 1.7},
       {-0.9179150013761012, -0.32967995396436073, 4.4739473917272},
       {0.08208499862389884, 0.6703200460356393, 5.4739473917272}},
      {"sign", HT_UNARY_CALL(sign(x)), {-2.5, -0.4, 1.7}, {-1.0, -1.0, 1.0}, {0.0, 0.0, 0.0}},
      {"round", HT_UNARY_CALL(round(x)), {-2.5, -0.4, 1.7}, {-2.0, -0.0, 2.0}, {0.0, 0.0, 0.0}},
      {"ceil", HT_UNARY_CALL(ceil(x)), {-2.5, -0.4, 1.7}, {-2.0, -0.0, 2.0}, {0.0, 0.0, 0.0}},
      {"log1p",
       HT_UNARY_CALL(log1p(x)),
       {-0.9, 0.001, 4.0},
       {-2.302585092994046, 0.0009995003330835331, 1.6094379124341003},
       {10.000000000000002, 0.9990009990009991, 0.2}},
      {"rsqrt",
       HT_UNARY_CALL(rsqrt(x)),
       {0.3, 2.0, 50.0},
       {1.8257418583505538, 0.7071067811865475, 0.1414213562373095},
       {-3.0429030972509232, -0.17677669529663684, -0.001414213562373095}},
      {"leaky_relu",
       HT_UNARY_CALL(leaky_relu(x)),
       {-2.5, -0.4, 1.7},
       {-0.025, -0.004, 1.7},
       {0.01, 0.01, 1.0}},
      {"leaky_relu 0.2",
       HT_UNARY_CALL(leaky_relu(x, 0.2)),
       {-2.5, -0.4, 1.7},
       {-0.5, -0.08000000000000002, 1.7},
       {0.2, 0.2, 1.0}},
      {"elu",
       HT_UNARY_CALL(elu(x)),
       {-2.5, -0.4, 1.7},
       {-0.9179150013761013, -0.32967995396436073, 1.7},
       {0.0820849986238988, 0.6703200460356393, 1.0}},
      {"elu 1.5",
       HT_UNARY_CALL(elu(x, 1.5)),
       {-2.5, -0.4, 1.7},
       {-1.376872502064152, -0.4945199309465411, 1.7},
       {0.1231274979358482, 1.0054800690534589, 1.0}},
      {"hardtanh",
       HT_UNARY_CALL(hardtanh(x)),
       {-2.5, -0.4, 1.7},
       {-1.0, -0.4, 1.0},
       {0.0, 1.0, 0.0}},
      {"hardtanh -2 1.5",
       HT_UNARY_CALL(hardtanh(x, -2, 1.5)),
       {-2.0, -0.4, 1.7},
       {-2.0, -0.4, 1.5},
       {0.0, 1.0, 0.0}},
      {"clamp",
       HT_UNARY_CALL(clamp(x, -2, 1.5)),
       {-2.5, -0.4, 1.7},
       {-2.0, -0.4, 1.5},
       {0.0, 1.0, 0.0}},
      {"clamp min",
       HT_UNARY_CALL(clamp(x, -1)),
       {-2.5, -0.4, 1.7},
       {-1.0, -0.4, 1.7},
       {0.0, 1.0, 1.0}},
      {"clamp max",
       HT_UNARY_CALL(clamp(x, std::nullopt, -1)),
       {-2.5, -0.4, 1.7},
       {-2.5, -1.0, -1.0},
       {1.0, 0.0, 0.0}},
      {"prelu",
       HT_UNARY_CALL(prelu(x, constant(F32({1}, {0.3})))),
       {-2.5, -0.4, 1.7},
       {-0.75, -0.12, 1.7},
       {0.3, 0.3, 1.0}},
      {"pow 3",
       HT_UNARY_CALL(pow(x, 3)),
       {-2.5, -0.4, 1.7},
       {-15.625, -0.06400000000000002, 4.912999999999999},
       {18.75, 0.4800000000000001, 8.669999999999998}},
      {"pow 0.5",
       HT_UNARY_CALL(pow(x, 0.5)),
       {0.3, 2.0, 50.0},
       {0.5477225575051661, 1.414213562373095, 7.0710678118654755},
       {0.9128709291752769, 0.35355339059327373, 0.07071067811865475}},
  };
  return *rows;
}

void ExpectElements(const Tensor& got, const Doubles& want, const char* name) {
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got.at(static_cast<int64_t>(i)), want[i], 1e-6 * std::abs(want[i]) + 1e-37)
        << name << ", number " << i;
  }
}

TEST(TorchElementwise, ValuesAndGradients) {
  for (const TorchUnaryRow& row : ElementwiseRows()) {
    FnGraph graph([&](const Values& in) -> Values {
      const Value y = row.f(in[0]);
      return {y, gradients(sum(y), {in[0]})[0]};
    });
    const std::vector<Tensor> out = Call(graph, {Tensor::Of(DType::kF32, {3}, row.x)});
    ASSERT_EQ(out.size(), 2u) << row.name;
    ExpectElements(out[0], row.y, row.name);
    ExpectElements(out[1], row.dx, row.name);
  }
}

// A weight per channel: axis 1.
TEST(TorchElementwise, PreluOfChannels) {
  FnGraph graph([](const Values& in) -> Values {
    const Value y = prelu(in[0], in[1]);
    const Values d = gradients(sum(y * in[2]), {in[0], in[1]});
    return {y, d[0], d[1]};
  });
  const std::vector<Tensor> out =
      Call(graph, {F32({2, 3}, {-1, 2, -3, 4, -5, -6}), F32({3}, {0.1, 0.2, 0.3}),
                   F32({2, 3}, {1, 2, 3, 4, 5, 6})});
  ASSERT_EQ(out.size(), 3u);
  ExpectElements(out[0], {-0.1, 2, -0.9, 4, -1, -1.8}, "y");
  ExpectElements(out[1], {0.1, 2, 0.9, 4, 1, 1.8}, "dx");
  ExpectElements(out[2], {-1, -25, -45}, "dweight");
}

TEST(TorchElementwise, PreluOfAnotherNumberOfChannels) {
  FnGraph graph([](const Values& in) -> Values { return {prelu(in[0], in[1])}; });
  EXPECT_THAT(Message(CallStatus(graph, {F32({1, 2}, {1, 2}), F32({3}, {1, 2, 3})})),
              ::testing::HasSubstr("prelu: weight is f32[3]; expected one value, or 2 for the "
                                   "channels of f32[1,2]"));
}

TEST(TorchElementwise, PReLUOwnsItsWeight) {
  PReLU layer(2);
  FnGraph graph([&](const Values& in) -> Values { return {layer(in[0])}; });
  graph.add_module("layer", layer);
  EXPECT_THAT(Call1(graph, {F32({1, 2}, {-4, 8})}), ::testing::ElementsAre(-1, 8));
  EXPECT_EQ(graph.named_parameters().size(), 1u);
  EXPECT_EQ(layer.description(), "PReLU(2)");
  FnGraph wrong;
  PReLU none(0);
  wrong.add_module("none", none);
  wrong.fn = [&](const Values& in) -> Values { return {none(in[0])}; };
  EXPECT_THAT(Message(CallStatus(wrong, {F32({1, 2}, {-4, 8})})),
              ::testing::HasSubstr("PReLU: num_parameters is 0; expected at least 1"));
}

#undef HT_UNARY_CALL

}  // namespace
}  // namespace halftone::nn
