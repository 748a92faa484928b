// LSTM and GRU beside PyTorch's numbers; their parameters, layouts and modes, and what they refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "halftone/core/philox.h"
#include "halftone/tests/nn/torch_row.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ((i step + offset) mod 11 - 5) / 4 times `factor`.
Tensor Wave(const Shape& shape, int64_t step, int64_t offset, double factor = 1) {
  Tensor t = Tensor::Empty(DType::kF32, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.set(i, factor * static_cast<double>((i * step + offset) % 11 - 5) / 4);
  }
  return t;
}

// Parameter i becomes a wave of step 3, 5, 7 or 9 and offset i.
void FillWithWaves(Module& module) {
  runtime::StateDict state;
  int64_t i = 0;
  for (const auto& [name, parameter] : module.named_parameters()) {
    state[name] = Wave(parameter.shape(), 3 + 2 * (i % 4), i, 0.5);
    ++i;
  }
  const auto report = module.load_state_dict(state);
  ASSERT_TRUE(report.ok()) << Message(report.status());
}

std::vector<std::string> NamesOf(const Module& module) {
  std::vector<std::string> names;
  for (const auto& entry : module.named_parameters()) names.push_back(entry.first);
  return names;
}

// Sum of 1 t, 2 t, 3 t, .. over the elements.
Value Weighed(const Value& t) {
  Doubles factors;
  for (int64_t i = 0; i < t.shape().num_elements(); ++i) factors.push_back(double(i + 1));
  return sum(t * constant(Tensor::Of(DType::kF32, t.shape(), factors)));
}

struct TorchRun {
  std::vector<Tensor> in;    // x, then the state
  std::vector<Doubles> out;  // y, then the state
  Doubles dx;                // of the weighed sum of all of `out`, / 10
  Doubles dparameters;       // each weighed and summed, in PyTorch's order
};

void ExpectAsInTorch(Module& layer, const TorchRun& want) {
  FillWithWaves(layer);
  FnGraph graph([&](const Values& in) -> Values {
    Values results = layer(in);
    Value loss = constant(Tensor::Zeros(DType::kF32, {}));
    for (const Value& result : results) loss = loss + Weighed(result) * 0.1;
    std::vector<Value> wrt = {in[0]};
    for (const auto& [name, parameter] : layer.named_parameters()) wrt.push_back(parameter);
    const Values d = gradients(loss, wrt);
    results.push_back(d[0]);
    for (size_t i = 1; i < d.size(); ++i) results.push_back(Weighed(d.vector()[i]));
    return results;
  });
  graph.add_module("layer", layer);
  const std::vector<Tensor> out = Call(graph, want.in);
  const size_t states = want.out.size();
  ASSERT_EQ(out.size(), states + 1 + want.dparameters.size());
  for (size_t i = 0; i < states; ++i) ExpectNear(out[i], want.out[i], Concat("result ", i));
  ExpectNear(out[states], want.dx, "dx");
  for (size_t i = 0; i < want.dparameters.size(); ++i) {
    EXPECT_NEAR(out[states + 1 + i].item(), want.dparameters[i],
                2e-5 * (1 + std::abs(want.dparameters[i])))
        << "parameter " << i;
  }
}

// The literals: PyTorch 2.15 in f64, rounded to 9 digits.

TEST(LSTM, IsPyTorchs) {
  LSTM plain(3, 2);
  ExpectAsInTorch(
      plain, {{Wave({3, 2, 3}, 7, 0)},
              {{0.0326382043, 0.0149562556, -0.0113449294, -0.251394007, 0.0665702363, -0.241260296,
                -0.0331808134, -0.35740433, 0.136385204, -0.0479685971, 0.100216191, -0.0553743817},
               {0.136385204, -0.0479685971, 0.100216191, -0.0553743817},
               {0.340776088, -0.115760995, 0.246340743, -0.129797833}},
              {-0.0924634362, -0.0130493124, 0.088867494, -0.111496507, 0.061309559, 0.0964244401,
               -0.0798576644, 0.0619331234, 0.0697084205, -0.165616464, 0.063147276, 0.169963942,
               -0.221687357, -0.0837141779, 0.179279107, -0.397404316, -0.18735732, 0.364508226},
              {12.3797289, -4.5884739, 10.5469545, 10.5469545}});
  LSTM one_step(1, 2, {.bias = false});
  ExpectAsInTorch(
      one_step,
      {{Wave({1, 1, 1}, 7, 9), Wave({1, 1, 2}, 3, 0), Wave({1, 1, 2}, 5, 2)},
       {{-0.315150666, 0.0765171056}, {-0.315150666, 0.0765171056}, {-0.583336543, 0.133281857}},
       {-0.0102706779},
       {1.79400883, -5.93960836}});
  LSTM alone(3, 2);  // without a batch
  ExpectAsInTorch(
      alone, {{Wave({3, 3}, 7, 0)},
              {{0.0326382043, 0.0149562556, 0.0804062607, -0.236186971, 0.0567295036, -0.334777434},
               {0.0567295036, -0.334777434},
               {0.12792376, -0.753067715}},
              {-0.0950874794, -0.014699214, 0.0897582277, -0.0855083224, 0.0582406906, 0.0629764342,
               -0.155517155, 0.0892306132, 0.137172718},
              {-2.62122332, 0.0615438848, 2.04819971, 2.04819971}});
}

TEST(LSTM, LayersDirectionsAndProjectionsArePyTorchs) {
  LSTM layer(2, 3, {.num_layers = 2, .batch_first = true, .bidirectional = true, .proj_size = 2});
  ExpectAsInTorch(
      layer,
      {{Wave({1, 4, 2}, 4, 1), Wave({4, 1, 2}, 3, 0), Wave({4, 1, 3}, 5, 2)},
       {{-0.189701042, -0.221598778, -0.0559722423, -0.00444798118, -0.24320987, -0.256213173,
         -0.0614682422, -0.0141997353, -0.234387103, -0.245815408, -0.0610777649, -0.0577331436,
         -0.240687957, -0.245897753, -0.0741259523, -0.133509677},
        {0.0535709001, 0.167618511, 0.0595292893, -0.0736841577, -0.240687957, -0.245897753,
         -0.0559722423, -0.00444798118},
        {-0.534199697, -0.599508323, 0.407294368, -0.27395853, -0.491563249, 0.090204184,
         0.63037118, -0.471258956, 0.465718636, -0.403423433, -0.0451064148, -0.320965706}},
       {0.295441007, -0.231060137, 0.125662873, 0.0175684069, 0.139619753, -0.0811642153,
        0.0441031458, -0.0631531013},
       {4.59082741, 2.47375381, 4.69838583, 4.69838583, -2.83138412, -4.90294472, 0.027143916,
        8.05201339, 8.05201339, 1.67022771, 6.972305,   -11.1064904, 10.4490464,  10.4490464,
        1.10844842, 11.748634,  5.80839899, 30.8978421, 30.8978421,  -14.8522385}});
  EXPECT_THAT(NamesOf(layer),
              ElementsAre("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                          "weight_hr_l0", "weight_ih_l0_reverse", "weight_hh_l0_reverse",
                          "bias_ih_l0_reverse", "bias_hh_l0_reverse", "weight_hr_l0_reverse",
                          "weight_ih_l1", "weight_hh_l1", "bias_ih_l1", "bias_hh_l1",
                          "weight_hr_l1", "weight_ih_l1_reverse", "weight_hh_l1_reverse",
                          "bias_ih_l1_reverse", "bias_hh_l1_reverse", "weight_hr_l1_reverse"));
}

TEST(GRU, IsPyTorchs) {
  GRU plain(3, 2);
  ExpectAsInTorch(
      plain, {{Wave({3, 2, 3}, 7, 0)},
              {{0.156478101, 0.108928044, -0.0512426064, -0.306621259, 0.0541716895, -0.203559174,
                -0.13508104, -0.426346234, 0.377102819, -0.0582148531, 0.304748657, -0.0230960697},
               {0.377102819, -0.0582148531, 0.304748657, -0.0230960697}},
              {-0.197951086, -0.0792665155, 0.238519174, -0.123698007, 0.114360884, 0.0440745094,
               -0.0855858264, 0.113109092, 0.00964597392, -0.144002882, 0.0846068023, 0.105509817,
               -0.551206009, -0.201171796, 0.434885981, -0.756946184, -0.343952111, 0.713169508},
              {22.8052153, -5.22500959, 23.605191, 11.3439903}});
  GRU one_step(1, 2, {.bias = false});
  ExpectAsInTorch(one_step, {{Wave({1, 1, 1}, 7, 9), Wave({1, 1, 2}, 3, 0)},
                             {{-0.806984713, -0.331448345}, {-0.806984713, -0.331448345}},
                             {-0.0846061827},
                             {1.36739767, -2.36344042}});
  GRU layers(2, 3, {.num_layers = 2, .batch_first = true, .bidirectional = true});
  ExpectAsInTorch(
      layers, {{Wave({1, 4, 2}, 4, 1), Wave({4, 1, 3}, 3, 0)},
               {{-0.172541756, 1.13176091,  -0.860333381, -0.24000215,  -0.498741856, 0.368951653,
                 -0.147264906, 1.06097025,  -0.942651277, -0.13258065,  -0.386166627, 0.254716424,
                 -0.483684294, 0.939959834, -0.909184954, 0.0176836425, -0.45747754,  0.0533098753,
                 -0.56590704,  0.873397369, -0.907983959, 0.0443090883, -0.225603177, -0.166227037},
                {-0.650457303, -0.337269813, 0.644056042, 0.185451285, -0.668613757, -0.125868663,
                 -0.56590704, 0.873397369, -0.907983959, -0.24000215, -0.498741856, 0.368951653}},
               {0.128098833, -0.401866959, 0.689268662, -0.569073374, 0.112690396, -0.750679284,
                0.23201657, -0.921001074},
               {12.4180134, 0.934544891, 7.07872678, 1.71812719, -1.89770741, 2.42685511,
                1.88389961, -1.2311086, -260.359625, -2.74046195, 45.9411156, 24.6846042,
                -406.079888, -34.3835304, 70.6438886, 29.5206122}});
}

TEST(LSTM, InitialisationAndOptionsArePyTorchs) {
  LSTM layer(8, 64);
  const auto state = layer.state_dict();
  ASSERT_TRUE(state.ok());
  for (const auto& [name, value] : *state) {
    double most = 0;
    for (double v : value.ToVector()) most = std::max(most, std::abs(v));
    EXPECT_LE(most, 1 / std::sqrt(64.0)) << name;
    EXPECT_GT(most, 0.97 / std::sqrt(64.0)) << name;
  }
  EXPECT_EQ(state->at("weight_ih_l0").shape(), (Shape{256, 8}));
  EXPECT_EQ(LSTM(8, 64).description(), "LSTM(8, 64)");
  // x alone gives the output alone: a layer among others.
  FnGraph graph([&](const Values& in) -> Values {
    return {layer(in[0]), layer(Values{in[0]})[0]};
  });
  graph.add_module("layer", layer);
  const auto out = Call(graph, {Wave({2, 3, 8}, 3, 1)});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].ToVector(), out[1].ToVector());
}

// Between layers, in training mode: with it every second element of the input of layer 1 is 0.
TEST(GRU, DropoutBetweenLayers) {
  GRU layer(2, 2, {.num_layers = 2, .dropout = 0.5});
  GRU single(2, 2, {.dropout = 0.5});
  FnGraph graph([&](const Values& in) -> Values { return {layer(in[0]), single(in[0])}; });
  graph.add_module("layer", layer);
  graph.add_module("single", single);
  const Tensor x = Wave({4, 3, 2}, 3, 1);
  const auto first = Call(graph, {x}), second = Call(graph, {x});
  graph.eval();
  const auto third = Call(graph, {x}), fourth = Call(graph, {x});
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[1].ToVector(), second[1].ToVector());
  EXPECT_EQ(third[0].ToVector(), fourth[0].ToVector());
}

TEST(LSTM, Errors) {
  EXPECT_THAT(Message(LSTM(0, 4).status()), HasSubstr("input_size is 0; expected at least 1"));
  EXPECT_THAT(Message(LSTM(3, 4, {.num_layers = 0}).status()),
              HasSubstr("num_layers is 0; expected at least 1"));
  EXPECT_THAT(Message(LSTM(3, 4, {.num_layers = 5000}).status()),
              HasSubstr("num_layers is 5000; expected at most 1000"));
  EXPECT_THAT(Message(LSTM(3, 4, {.dropout = 1.0}).status()),
              HasSubstr("dropout is 1; expected 0 <= dropout < 1"));
  EXPECT_THAT(Message(LSTM(3, 4, {.proj_size = 4}).status()),
              HasSubstr("proj_size is 4; expected 0 (no projection) or less than hidden_size, 4"));
  LSTM layer(3, 4, {.batch_first = true});
  GRU gated(3, 4);
  const auto error = [&](Module& module, const std::vector<Shape>& shapes) {
    FnGraph graph([&](const Values& in) -> Values { return module(in); });
    graph.add_module("module", module);
    std::vector<Tensor> in;
    for (const Shape& shape : shapes) in.push_back(Tensor::Zeros(DType::kF32, shape));
    return Message(CallStatus(graph, in));
  };
  EXPECT_THAT(error(layer, {{2, 5, 4}}),
              HasSubstr("LSTM: x has shape [2,5,4]; expected [B,T,3] or [T,3]"));
  EXPECT_THAT(error(layer, {{2, 5, 3}, {1, 2, 4}}),
              HasSubstr("LSTM: got 2 values; expected x, or x and the states h0 and c0"));
  EXPECT_THAT(error(layer, {{2, 5, 3}, {1, 5, 4}, {1, 2, 4}}),
              HasSubstr("LSTM: h0 has shape [1,5,4]; expected [1,2,4]"));
  EXPECT_THAT(error(layer, {{5, 3}, {1, 4}, {1, 5}}),
              HasSubstr("LSTM: c0 has shape [1,5]; expected [1,4]"));
  EXPECT_THAT(error(layer, {{2, 0, 3}}), HasSubstr("expected at least one step"));
  EXPECT_THAT(error(gated, {{5, 2, 3}, {1, 2, 4}, {1, 2, 4}}),
              HasSubstr("GRU: got 3 values; expected x, or x and the state h0"));
}

TEST(LSTM, FunctionsRefuse) {
  const auto error = [](const Shape& x, const Shape& w) {
    FnGraph graph([](const Values& in) -> Values {
      const Value h0 = constant(Tensor::Zeros(DType::kF32, {2, 4}));
      return lstm(in[0], h0, h0, in[1], in[1]);
    });
    return Message(
        CallStatus(graph, {Tensor::Zeros(DType::kF32, x), Tensor::Zeros(DType::kF32, w)}));
  };
  EXPECT_THAT(error({2, 3}, {16, 3}), HasSubstr("lstm: x is f32[2,3]; expected [T,B,I]"));
  EXPECT_THAT(error({5, 2, 3}, {16, 4}),
              HasSubstr("lstm: weight_ih is f32[16,4]; expected a column for each of the 3 of x "
                        "[5,2,3]"));
}

// Beside f32: cells stay f32, and both layers' products are 16-bit.
TEST(LSTM, UnderMixedPrecision) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    LSTM layer(6, 8, {.num_layers = 2, .bidirectional = true, .proj_size = 4});
    GRU gated(8, 8);
    FillWithWaves(layer);
    FillWithWaves(gated);
    const auto run = [&](bool low) {
      FnGraph graph([&](const Values& in) -> Values {
        Values out = layer(in);
        const Value loss = mean(gated(out[0]) * 3.0);
        return {loss, out[2], gradients(loss, {in[0]})[0]};
      });
      graph.add_module("layer", layer);
      graph.add_module("gated", gated);
      graph.config.enable_amp(low, {.dtype = dtype});
      return Call(graph, {Wave({5, 4, 6}, 3, 1)});
    };
    const auto wide = run(false), low = run(true);
    ASSERT_EQ(low.size(), 3u);
    EXPECT_EQ(low[1].dtype(), DType::kF32);
    const double tolerance = dtype == DType::kF16 ? 0.01 : 0.05;
    for (size_t i = 0; i < 3; ++i) {
      double most = 0;
      for (double v : wide[i].ToVector()) most = std::max(most, std::abs(v));
      for (int64_t e = 0; e < wide[i].num_elements(); ++e) {
        EXPECT_NEAR(low[i].at(e), wide[i].at(e), tolerance * most) << i << ", " << e;
      }
    }
  }
}

// The adding problem: the sum of the two numbers that are marked. Source: Hochreiter, Schmidhuber:
// "Long short-term memory", section 5.4, here over 10 steps.
class AddingProblem : public Graph {
 public:
  explicit AddingProblem(DType dtype) : lstm_(2, 16, {.batch_first = true}), head_(16, 1) {
    add_module("lstm", lstm_);
    add_module("head", head_);
    add_optimizer(optim::Adam(parameters(), {.lr = 0.01}));
    config.enable_amp(true, {.dtype = dtype});
    if (dtype == DType::kF16) set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
  }
  Values build(const Values& in) override {
    const Value h_n = lstm_(Values{in[0]})[1];
    const Value loss = mse_loss(head_(reshape(h_n, {-1, 16})), in[1]);
    loss.backward();
    return {loss};
  }

 private:
  LSTM lstm_;
  Linear head_;
};

TEST(LSTM, LearnsToAddUnderMixedPrecision) {
  constexpr int64_t kBatch = 32, kSteps = 10;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    AddingProblem graph(dtype);
    double last = 0;
    for (uint64_t step = 0; step < 1000; ++step) {
      PhiloxStream random(7, step);
      Tensor x = Tensor::Zeros(DType::kF32, {kBatch, kSteps, 2});
      Tensor y = Tensor::Zeros(DType::kF32, {kBatch, 1});
      for (int64_t b = 0; b < kBatch; ++b) {
        for (int64_t t = 0; t < kSteps; ++t) x.set((b * kSteps + t) * 2, random.Uniform());
        for (const int64_t from : {int64_t{0}, kSteps / 2}) {
          const auto t = from + static_cast<int64_t>(random.Uniform() * (kSteps / 2 - 1));
          x.set((b * kSteps + t) * 2 + 1, 1);
          y.set(b, y.at(b) + x.at((b * kSteps + t) * 2));
        }
      }
      const auto loss = Call1(graph, {x, y});
      ASSERT_EQ(loss.size(), 1u);
      last = step < 980 ? 0 : last + loss[0] / 20;
    }
    // The variance of a sum of two uniform numbers is 1/6: what ignoring the input gives.
    EXPECT_LT(last, 0.02) << Name(dtype);
    const auto state = graph.state_dict();
    ASSERT_TRUE(state.ok());
    for (const auto& [name, value] : *state) {
      if (!IsFloat(value.dtype())) continue;
      for (double v : value.ToVector()) ASSERT_TRUE(std::isfinite(v)) << name;
    }
  }
}

}  // namespace
}  // namespace halftone::nn
