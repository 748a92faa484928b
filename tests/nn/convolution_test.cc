// Convolutions and transposed convolutions over one to three axes beside PyTorch's (2.15, in f64).
#include <gtest/gtest.h>

#include "halftone/tests/nn/torch_whole_row.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;

const std::vector<TorchWholeRow>& ConvolutionRows() {
  static const auto* const rows = new std::vector<TorchWholeRow>{
      {"conv1d",
       HT_CALL(conv1d(in[0], in[1], in[2], {.stride = 2, .padding = 1})),
       {{2, 2, 5}, {3, 2, 3}, {3}},
       {5, -8, -7, -1, 3, 5, -2, -1, -3, 5, -8, -7, -1, 3, 5, -2, -1, -3},
       {{12, -7, 12, -7, 12, -11, 0, -13, 1, -15, 12, -7, 12, -7, 12, -29, 9, -31, 10, -33},
        {-15, 19, -13, -15, 19, -13, -21, 25, -19, -21, 25, -19, -27, 31, -25, -27, 31, -25},
        {39, 57, 75}}},
      {"conv1d, groups",
       HT_CALL(conv1d(in[0], in[1], {.dilation = 2, .groups = 2})),
       {{1, 4, 5}, {2, 2, 2}},
       {-2, 0, 2, 8, -1, -5},
       {{1, 2, 1, -4, -6, 0, 0, 2, 4, 6, -4, -5, -2, 5, 6, -8, -10, -12, 0, 0},
        {4, 3, 4, 3, 4, 9, 4, 9}}},
      {"conv1d, large stride",
       HT_CALL(conv1d(in[0], in[1], in[2], {.stride = 9})),
       {{1, 1, 12}, {2, 1, 3}, {2}},
       {-3, 4, -1, 5},
       {{7, -5, 3, 0, 0, 0, 0, 0, 0, 10, -8, 4}, {0, -4, 2, -2, -8, 6}, {3, 7}}},
      {"conv2d, uneven",
       HT_CALL(conv2d(in[0], in[1], in[2], {.stride = {1, 2}, .padding = {1, 0}})),
       {{1, 2, 3, 4}, {2, 2, 2, 3}, {2}},
       {-8, 3, -5, 4, -3, 8, -1, 3},
       {{9, -3, -5, 0, 13, -6, -5, 0, 17, -9, -5, 0, -3, -5, 18, 0, -6, -5, 21, 0, -9, -5, 24, 0},
        {-5,  -2, -4, -3,  -1, -4, -4, 4, 7,  -4, 3, 5,
         -13, -6, -4, -11, -5, -4, -4, 8, 15, -4, 7, 13},
        {10, 26}}},
      {"conv3d",
       HT_CALL(conv3d(in[0], in[1], in[2])),
       {{1, 2, 2, 3, 3}, {2, 2, 2, 2, 2}, {2}},
       {-15, 7, 6, 8, 10, -9, -2, 9},
       {{-9, -12, -4, -1,  -9, -10, 14,  15,  0,  4,  -5, -10, 2,  -1, 0,   -6, 6,  16,
         -3, 2,   4,  -10, -8, 0,   -11, -18, -8, 10, 9,  -2,  18, 10, -10, 4,  -7, -12},
        {-1, -1, 9,  -1, -1, -1, -6,  9,  9,  -1, -1, -6,  -6,  9,  -1, -1,
         -9, 3,  17, -1, -1, -9, -10, 17, 17, -1, 3,  -10, -10, 17, -9, 3},
        {10, 26}}},
      {"conv3d, uneven",
       HT_CALL(conv3d(in[0], in[1], in[2],
                      {.stride = {2, 1, 3}, .padding = {0, 1, 2}, .dilation = {1, 2, 1}})),
       {{1, 1, 3, 3, 4}, {1, 1, 2, 2, 3}, {1}},
       {0, -8, 6, 1, -1, -5},
       {{0, 4, -8, 0,  1, 10, -14, 2, 3, 8, -4, 4, 6, -8, 0, 8, 8, -14,
         2, 8, -6, -4, 4, -8, 0,   0, 0, 0, 0,  0, 0, 0,  0, 0, 0, 0},
        {-12, 8, 7, 0, -8, 2, 8, -2, 4, 4, 6, -8},
        {21}}},
      {"conv3d, depthwise",
       HT_CALL(conv3d(in[0], in[1], {.padding = 1, .groups = 2})),
       {{1, 2, 2, 1, 2}, {2, 1, 3, 2, 2}},
       {-4, 8, -1, -4, 7, -2, -4, -4, 2, 6, -5, 1, -1, 8, -4, 0, -6, 6, 1, -5, 6, 2, -4, -4},
       {{0, -1, -11, -13, 24, 25, -14, -14}, {-22, -20, -16, -14, 0,  1,  3,  4,  4,  3,  1,  0,
                                              -25, -24, -22, -21, 29, 28, 26, 25, 36, 34, 30, 28}}},
      {"conv_transpose1d",
       HT_CALL(
           conv_transpose1d(in[0], in[1], in[2], {.stride = 2, .padding = 1, .output_padding = 1})),
       {{2, 2, 3}, {2, 3, 3}, {3}},
       {2, 0, 0,  1, -7, 3,  1, 0, 3,  4, -5, 5, 0,  -5, -4, -8, 2,  2,
        0, 1, -7, 2, 1,  -1, 3, 4, -5, 3, 2,  0, -4, -8, 2,  4,  -2, -4},
       {{27, 17, 19, -23, -15, -19, 27, 35, 37, -59, -51, -55},
        {26, 27, 28, 44, 33, 34, 62, 39, 40, -46, -31, -34, -64, -49, -52, -82, -67, -70},
        {150, 222, 294}}},
      {"conv_transpose1d, groups",
       HT_CALL(conv_transpose1d(in[0], in[1], {.groups = 2, .dilation = 3})),
       {{1, 4, 2}, {4, 1, 2}},
       {-2, 0, 0, 8, -2, -1, -2, 0, 1, -2},
       {{-7, -8, 8, 10, 3, 3, -12, -14}, {-2, -8, 0, 3, -8, -11, 14, 20}}},
      {"conv_transpose1d, large stride",
       HT_CALL(conv_transpose1d(in[0], in[1], in[2], {.stride = 5})),
       {{1, 1, 3}, {1, 2, 2}, {2}},
       {-3, 3, -1, -1, -1, -1, -1, -1, -1, -1, 1, -5, 1, -3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5},
       {{25, 30, 35}, {20, 20, 20, 20}, {78, 222}}},
      {"conv_transpose2d",
       HT_CALL(conv_transpose2d(in[0], in[1], in[2])),
       {{1, 2, 2, 3}, {2, 2, 2, 2}, {2}},
       {-3, 7, -3, -4, 0, -5, -8, 9, 0, -7, 5, -5, 3, -1, 3, 1, 6, -1, -1, -2, 2, 2, 3, 1},
       {{-24, -25, -26, -28, -29, -30, 22, 24, 26, 30, 32, 34},
        {-9, -11, -17, -19, -33, -35, -41, -43, -6, -6, -6, -6, -6, -6, -6, -6},
        {78, 222}}},
      {"conv_transpose2d, uneven",
       HT_CALL(conv_transpose2d(
           in[0], in[1], in[2],
           {.stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2}, .dilation = {1, 2}})),
       {{1, 1, 3, 2}, {1, 1, 3, 2}, {1}},
       {-1, -1, -5, -1, -1, -1, -1, -1, 3,  -1, -7, -2, -1, 1,  -1, -1,
        -1, -1, 3,  -1, -1, -3, -1, -1, -2, -1, -1, -2, -1, 2,  -1, -1,
        -1, -1, 1,  -1, -1, -5, -1, -1, -2, -1, 0,  1,  -1, -3, -1, -1},
       {{8, 14, 27, 30, 43, 46}, {-25, -25, -27, -31, -43, -47}, {1176}}},
      {"conv_transpose2d, depthwise",
       HT_CALL(conv_transpose2d(in[0], in[1], {.stride = 2, .groups = 2})),
       {{1, 2, 2, 2}, {2, 1, 2, 1}},
       {-2, 0, 0, 4, 0, 0, 2, 0, -1, -4, 0, 2, 0, 0, 0, 2, 0, -4, 0, 0, 0, 0, 0, 4},
       {{-7, -9, -13, -15, 32, 36, 44, 48}, {3, 0, 25, 28}}},
      {"conv_transpose2d, output_padding over the stride",
       HT_CALL(conv_transpose2d(in[0], in[1], in[2],
                                {.padding = {2, 1}, .output_padding = {2, 1}, .dilation = {3, 2}})),
       {{1, 1, 3, 2}, {1, 1, 2, 2}, {1}},
       {-3, -3, 3, -1, -5, -1, -1, 3, -3, -1, 1, -5},
       {{10, 12, 16, 18, 18, 19}, {-2, -4, -27, -16}, {78}}},
      {"conv_transpose3d",
       HT_CALL(conv_transpose3d(in[0], in[1], in[2], {.stride = 2})),
       {{1, 2, 2, 1, 2}, {2, 1, 2, 1, 2}, {1}},
       {-4, 4, 1, -3, -3, -5, 3, -1, 1, -5, -4, 3, -1, 3, -5, -3},
       {{9, 11, 17, 19, -9, -13, -25, -29}, {5, 4, 1, 0, 17, 18, 21, 22}, {136}}},
      {"conv_transpose3d, uneven",
       HT_CALL(conv_transpose3d(
           in[0], in[1], in[2],
           {.stride = {2, 1, 3}, .padding = {1, 0, 1}, .output_padding = {1, 0, 2}})),
       {{1, 1, 2, 2, 2}, {1, 1, 3, 2, 2}, {1}},
       {-3, -1, -1, -1, -1, 1,  -1, 0,  -2, -1, -1, -1, 1, -1, -1, -1, -1, -3, 3,  -1,
        3,  -1, -1, -8, -1, -5, -1, -2, 5,  -1, 0,  -1, 1, -3, -1, -1, -1, 1,  1,  -1,
        -1, -1, -5, -1, -1, -2, -1, -5, 1,  -1, -3, -1, 1, 1,  -1, -1, -1, 1,  -5, -1},
       {{-57, -23, -67, -33, -107, -55, -117, -60},
        {10, 26, 10, 31, 2, 42, -3, 42, -13, 42, -18, 42},
        {1830}}},
      {"conv_transpose3d, groups",
       HT_CALL(conv_transpose3d(in[0], in[1], {.groups = 2})),
       {{1, 2, 1, 2, 2}, {2, 2, 1, 2, 1}},
       {-2, 0, 6, -1, -4, 2, 0, 0, -4, 0, 4, -2, -1, 2, 1, -4, 0, 2, -2, 4, 0, -4, 0, 0},
       {{13, 14, 15, 16, -36, -38, -40, -42}, {0, -2, -6, -8, 17, 19, 23, 25}}},
  };
  return *rows;
}

TEST(Convolution, ValuesAndGradientsArePyTorchs) {
  for (const TorchWholeRow& row : ConvolutionRows()) CheckTorchWholeRow(row);
}

TEST(Convolution, NoImages) {
  FnGraph graph([](const Values& in) -> Values {
    const Value along = conv1d(in[0], in[1]), up = conv_transpose1d(in[0], in[1], {.stride = 2});
    const Values d = gradients(sum(along) + sum(up), {in[1]});
    return {along, up, d[0]};
  });
  const std::vector<Tensor> out =
      Call(graph, {F32({0, 2, 3}, {}), F32({2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].TypeString(), "f32[0,2,2]");
  EXPECT_EQ(out[1].TypeString(), "f32[0,2,6]");
  EXPECT_EQ(out[2].ToVector(), std::vector<double>(8, 0));
}

// A transposed convolution of stride 2 puts one copy of the weights at every other place.
TEST(Convolution, TransposedSpreadsTheWeights) {
  FnGraph graph([](const Values& in) -> Values {
    return {conv_transpose1d(in[0], in[1], in[2], {.stride = 2})};
  });
  EXPECT_THAT(Call1(graph, {F32({1, 1, 3}, {1, 10, 100}), F32({1, 1, 2}, {1, 2}), F32({1}, {0.5})}),
              ::testing::ElementsAre(1.5, 2.5, 10.5, 20.5, 100.5, 200.5));
}

TEST(Convolution, Errors) {
  const auto expect = [](FnGraph::Fn fn, const char* message) {
    FnGraph graph(std::move(fn));
    EXPECT_THAT(
        Message(CallStatus(
            graph,
            {Tensor::Zeros(DType::kF32, {2, 3, 5}), Tensor::Zeros(DType::kF32, {3, 3, 2}),
             Tensor::Zeros(DType::kF32, {2, 3, 4, 5}), Tensor::Zeros(DType::kF32, {3, 4, 2, 3}),
             Tensor::Zeros(DType::kF32, {2}), Tensor::Zeros(DType::kI64, {2, 3, 4, 5})})),
        HasSubstr(message));
  };
#define HT_EXPECT(call, message) expect([](const Values& in) -> Values { return {call}; }, message)
  HT_EXPECT(conv1d(in[2], in[1]), "conv1d: x is f32[2,3,4,5]; expected rank 3");
  HT_EXPECT(conv1d(in[0], in[3]), "conv1d: weight is f32[3,4,2,3]; expected rank 3");
  HT_EXPECT(conv1d(in[0], in[1], {.dilation = 5}),
            "conv2d: the window of 1x6 does not fit the padded input of 1x5");
  HT_EXPECT(conv1d(in[0], in[1], {.groups = 2}), "conv2d: groups is 2 for 3 input and 3 output");
  HT_EXPECT(conv1d(in[0], in[1], {.stride = 0}), "conv2d: stride is [1,0]; expected 2 integers");
  HT_EXPECT(conv1d(in[0], in[1], in[4]), "conv2d: b is f32[2]; expected f32[3]");
  HT_EXPECT(conv3d(in[2], in[3]), "conv3d: x is f32[2,3,4,5]; expected rank 5");
  HT_EXPECT(conv_transpose1d(in[2], in[1]), "conv_transpose1d: x is f32[2,3,4,5]; expected rank 3");
  HT_EXPECT(conv_transpose2d(in[2], in[1]),
            "conv_transpose2d: weight is f32[3,3,2]; expected rank 4");
  HT_EXPECT(conv_transpose3d(in[2], in[3]), "conv_transpose3d: x is f32[2,3,4,5]; expected rank 5");
  HT_EXPECT(conv_transpose2d(in[3], in[2]),
            "conv_transpose2d: weight is [2,3,4,5] for x [3,4,2,3] in 1 groups; "
            "expected [4,O/groups,..] and groups that divide 4");
  HT_EXPECT(conv_transpose2d(in[2], in[3], {.groups = 2}),
            "conv_transpose2d: weight is [3,4,2,3] for x [2,3,4,5] in 2 groups; "
            "expected [3,O/groups,..] and groups that divide 3");
  HT_EXPECT(conv_transpose2d(in[2], in[3], {.groups = int64_t{1} << 62}),
            "4611686018427387904 groups");
  HT_EXPECT(conv_transpose2d(in[2], in[3], {.stride = {2, 0}}),
            "conv_transpose2d: stride is 0; expected at least 1 and at most 1048576");
  HT_EXPECT(conv_transpose2d(in[2], in[3], {.padding = -1}),
            "conv_transpose2d: padding is -1; expected at least 0 and at most 1048576");
  HT_EXPECT(conv_transpose2d(in[2], in[3], {.dilation = int64_t{1} << 40}),
            "conv_transpose2d: dilation is 1099511627776; expected at least 1 and at most 1048576");
  HT_EXPECT(conv_transpose2d(in[2], in[3], {.stride = 3, .output_padding = {0, 3}}),
            "conv_transpose2d: output_padding is 3; expected 0..2, below stride 3 or dilation 1");
  HT_EXPECT(conv_transpose2d(in[2], in[3], {.padding = {0, 4}}),
            "conv_transpose2d: the result's extent along axis 3 is -1; expected at least 1");
  HT_EXPECT(conv_transpose2d(in[2], in[3], in[4]),
            "conv_transpose2d: bias is f32[2]; expected [4]");
  HT_EXPECT(conv_transpose2d(in[5], in[5]), "conv_transpose2d: weight is [2,3,4,5]");
#undef HT_EXPECT
}

// Images of 16 bit beside f32 weights, as a layer outside mixed precision meets them.
TEST(Convolution, MixedDtypesMeetInTheirPromotion) {
  FnGraph graph([](const Values& in) -> Values {
    return {conv1d(in[0], in[1]), conv_transpose1d(in[0], in[1])};
  });
  const std::vector<Tensor> out =
      Call(graph, {Tensor::Of(DType::kF16, {1, 1, 2}, {1, 2}), F32({1, 1, 1}, {1.0009765625})});
  ASSERT_EQ(out.size(), 2u);
  for (const Tensor& y : out) {
    EXPECT_EQ(y.dtype(), DType::kF32);
    EXPECT_EQ(y.at(1), 2.001953125);
  }
}

// One step of a model that goes down and up again, in mixed precision: every layer of conv.h in it.
template <typename Down, typename Up>
void TrainDownAndUp(Down down, Up up, const Shape& images, bool amp) {
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = mse_loss(up(relu(down(in[0]))), in[0]);
    loss.backward();
    return {loss};
  });
  graph.add_module("down", down);
  graph.add_module("up", up);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
  if (amp) graph.config.enable_amp(true, {.dtype = DType::kBF16});
  const Tensor x = Tensor::Of(DType::kF32, images, Whole(images, 1));
  const double first = Call1(graph, {x}).at(0);
  double last = first;
  for (int step = 0; step < 20; ++step) last = Call1(graph, {x}).at(0);
  EXPECT_LT(last, 0.9 * first) << images << (amp ? ", bf16" : "");
}

TEST(ConvolutionLayers, Train) {
  for (const bool amp : {false, true}) {
    TrainDownAndUp(Conv1d(2, 8, 4, {.stride = 2, .padding = 1}),
                   ConvTranspose1d(8, 2, 4, {.stride = 2, .padding = 1}), {2, 2, 8}, amp);
    TrainDownAndUp(Conv2d(2, 8, 3, {.stride = 2, .padding = 1}),
                   ConvTranspose2d(8, 2, 3, {.stride = 2, .padding = 1, .output_padding = 1}),
                   {2, 2, 4, 6}, amp);
    TrainDownAndUp(Conv3d(2, 8, 2, {.stride = 2}), ConvTranspose3d(8, 2, 2, {.stride = 2}),
                   {2, 2, 4, 2, 4}, amp);
  }
}

// By PyTorch 2.15: Conv2d(1, 1, (2, 3), padding=(1, 2), padding_mode=...), weight 1..6, x 0..8, and the
// gradient of the sum of y[i] i.
struct PaddedRow {
  const char* mode;
  std::vector<double> y, dx;
};
const PaddedRow kPaddedRows[] = {
    {"zeros",
     {0, 6, 17, 14, 8, 18, 42, 70, 46, 22, 45, 90, 133, 82, 37, 18, 33, 44, 23, 8},
     {47, 68, 89, 152, 173, 194, 257, 278, 299}},
    {"reflect",
     {35, 32, 43, 46, 35, 62, 59, 70, 73, 62, 125, 122, 133, 136, 125, 98, 95, 106, 109, 98},
     {98, 168, 94, 616, 1036, 568, 398, 658, 354}},
    {"replicate",
     {0, 9, 25, 37, 42, 45, 54, 70, 82, 87, 108, 117, 133, 145, 150, 126, 135, 151, 163, 168},
     {77, 78, 265, 262, 173, 450, 889, 531, 1265}},
    {"circular",
     {55, 55, 61, 55, 55, 64, 64, 70, 64, 64, 127, 127, 133, 127, 127, 55, 55, 61, 55, 55},
     {568, 551, 516, 312, 299, 274, 518, 496, 456}}};

TEST(ConvolutionLayers, PaddingModes) {
  for (const PaddedRow& row : kPaddedRows) {
    Conv2d conv(1, 1, {2, 3}, {.padding = {1, 2}, .bias = false, .padding_mode = row.mode});
    FnGraph graph([&](const Values& in) -> Values {
      const Value y = conv(in[0]);
      return {y, gradients(sum(y * in[1]), {in[0]})[0]};
    });
    graph.add_module("conv", conv);
    ASSERT_TRUE(
        conv.weight.set_value(Tensor::Of(DType::kF32, {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6})).ok());
    const auto out =
        graph({Tensor::Of(DType::kF32, {1, 1, 3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8}),
               Tensor::Of(DType::kF32, {1, 1, 4, 5},
                          {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19})});
    ASSERT_TRUE(out.ok()) << row.mode << ": " << out.status();
    EXPECT_EQ((*out)[0].ToVector(), row.y) << row.mode;
    EXPECT_EQ((*out)[1].ToVector(), row.dx) << row.mode;
  }
}

TEST(ConvolutionLayers, PaddingModesOfOneAndThreeAxes) {
  Conv1d line(1, 1, 2, {.padding = 2, .bias = false, .padding_mode = "circular"});
  Conv3d volume(1, 1, 1, {.padding = {0, 0, 1}, .bias = false, .padding_mode = "replicate"});
  FnGraph graph([&](const Values& in) -> Values { return {line(in[0]), volume(in[1])}; });
  graph.add_module("line", line);
  graph.add_module("volume", volume);
  ASSERT_TRUE(line.weight.set_value(Tensor::Of(DType::kF32, {1, 1, 2}, {1, 10})).ok());
  ASSERT_TRUE(volume.weight.set_value(Tensor::Of(DType::kF32, {1, 1, 1, 1, 1}, {1})).ok());
  const auto out = graph({Tensor::Of(DType::kF32, {1, 1, 3}, {1, 2, 3}),
                          Tensor::Of(DType::kF32, {1, 1, 1, 1, 2}, {1, 2})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].ToVector(), (std::vector<double>{32, 13, 21, 32, 13, 21}));
  EXPECT_EQ((*out)[1].ToVector(), (std::vector<double>{1, 1, 2, 2}));
}

TEST(ConvolutionLayers, PaddingModesRefuse) {
  EXPECT_EQ(Message(Conv2d(1, 1, 3, {.padding_mode = "mirror"}).status()),
            "Conv2d: padding_mode is \"mirror\"; expected zeros, reflect, replicate or circular");
  Conv1d line(1, 1, 2, {.padding = 4, .padding_mode = "circular"});
  FnGraph graph([&](const Values& in) -> Values { return {line(in[0])}; });
  graph.add_module("line", line);
  EXPECT_THAT(
      std::string(Message(graph({Tensor::Zeros(DType::kF32, {1, 1, 3})}).status())),
      ::testing::HasSubstr("padded by 4 and 4; expected at most its extent in mode circular"));
}

TEST(ConvolutionLayers, ShapesOfWeights) {
  EXPECT_EQ(Conv1d(4, 6, 3, {.groups = 2}).weight.shape(), (Shape{6, 2, 3}));
  EXPECT_EQ(Conv3d(4, 6, {1, 2, 3}).weight.shape(), (Shape{6, 4, 1, 2, 3}));
  EXPECT_EQ(ConvTranspose1d(4, 6, 3, {.groups = 2}).weight.shape(), (Shape{4, 3, 3}));
  EXPECT_EQ(ConvTranspose2d(4, 6, {2, 3}).weight.shape(), (Shape{4, 6, 2, 3}));
  EXPECT_EQ(ConvTranspose3d(4, 6, 2).bias.shape(), (Shape{6}));
  EXPECT_FALSE(ConvTranspose3d(4, 6, 2, {.bias = false}).bias.defined());
  EXPECT_EQ(Conv1d(4, 6, 3).description(), "Conv1d(4, 6, (3))");
  EXPECT_EQ(ConvTranspose3d(4, 6, {1, 2, 3}).description(), "ConvTranspose3d(4, 6, (1, 2, 3))");
}

// Uniform in +-1/sqrt(fan_in), where a transposed layer's fan_in counts output channels.
TEST(ConvolutionLayers, InitialValuesArePyTorchs) {
  ConvTranspose2d up(64, 16, {2, 3}, {.groups = 2});
  Conv3d volume(8, 32, {1, 2, 3});
  FnGraph graph([](const Values& in) -> Values { return {in[0]}; });
  graph.add_module("up", up);
  graph.add_module("volume", volume);
  ASSERT_TRUE(graph.initialize().ok());
  const auto largest = [](const Parameter& p) {
    double found = 0;
    for (const double v : p.value().ToVector()) found = std::max(found, std::abs(v));
    return found;
  };
  // Of 3072 and 1536 values the largest is above 99 % of the bound but for one chance in 10^6.
  EXPECT_LE(largest(up.weight), 1 / std::sqrt(8 * 2 * 3.0));
  EXPECT_GE(largest(up.weight), 0.99 / std::sqrt(8 * 2 * 3.0));
  EXPECT_LE(largest(volume.weight), 1 / std::sqrt(8 * 1 * 2 * 3.0));
  EXPECT_GE(largest(volume.weight), 0.99 / std::sqrt(8 * 1 * 2 * 3.0));
  EXPECT_LE(largest(up.bias), 1 / std::sqrt(8 * 2 * 3.0));
}

TEST(ConvolutionLayers, ConstructorChecks) {
  EXPECT_EQ(Message(Conv1d(3, 4, 0).status()), "Conv1d: kernel_size is 0; expected at least 1");
  EXPECT_EQ(Message(Conv3d(3, 4, {0, 1, 1}).status()),
            "Conv3d: kernel depth is 0; expected at least 1");
  EXPECT_EQ(Message(ConvTranspose2d(3, 4, {1, 0}).status()),
            "ConvTranspose2d: kernel width is 0; expected at least 1");
  EXPECT_EQ(Message(ConvTranspose1d(3, 4, 2, {.groups = 2}).status()),
            "ConvTranspose1d: groups is 2; expected a divisor of 3 and 4 channels");
  EXPECT_EQ(Message(ConvTranspose3d(0, 4, 2).status()),
            "ConvTranspose3d: in_channels is 0; expected at least 1");
}

}  // namespace
}  // namespace halftone::nn
