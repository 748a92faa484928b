// Group, instance and RMS norm, and the batch norms of other ranks, beside PyTorch's (2.15, in f64).
#include <gtest/gtest.h>

#include "halftone/tests/nn/torch_whole_row.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<TorchWholeRow>& NormRows() {
  static const auto* const rows = new std::vector<TorchWholeRow>{
      {"group_norm",
       HT_CALL(group_norm(in[0], 2, in[1], in[2])),
       {{2, 4, 3}, {4}, {4}},
       {-2.1180314731819103,
        -0.776393705363618,
        0.5652440624546743,
        1.8944251785455282,
        -0.7888503570910563,
        3.2360629463638206,
        -2,
        -2,
        -2,
        1.5491886909238652,
        -3.0983773818477305,
        4.5865198777402145e-17,
        0.11803147318191032,
        -1.8944251785455284,
        -0.5527874107272359,
        4.130488124909349,
        1.4472125892727643,
        -1.2360629463638206,
        -2,
        -2,
        -2,
        0.2480687822196635,
        3.2248941688556254,
        -1.2403439110983174},
       {{4.863430116330674,   3.7230461640978882,  2.5826622118651024, -2.079541256922607,
         -5.232381860882832,  -3.857215374488226,  -8.520537800081257, -4.802507250047282,
         -10.379553075098245, 8.830364384174384,   4.8025072500472845, 10.069726491005127,
         12.158606986876318,  18.71583508824675,   15.462381160515037, -10.179697165753552,
         -15.445607745212698, -20.711518324671847, -13.28124219855058, -22.48645125760546,
         -8.678637669023141,  14.861232524917561,  7.144436159180664,  22.44066244108096},
        {12.745558794273776, -12.745558794273782, -17.648236328195175, 15.635780467532989},
        {48, 66, 84, 102}}},
      {"group_norm, images",
       HT_CALL(group_norm(in[0], 2, in[1], in[2], 0.5)),
       {{1, 4, 2, 2}, {4}, {4}},
       {-2.2060453783110545, -1, 0.20604537831105452, -1.6030226891555273, -0.20604537831105452,
        3.412090756622109, 1, -1.412090756622109, -2, -2, -2, -2, 2.8823067684915684,
        -0.9607689228305227, 1.6012815380508714, -2.24179415327122},
       {{2.782127406785728, 4.371914496377572, 5.961701585969418, 5.084577674470468,
         -2.370975573270596, -5.057167552236126, -5.276448530110863, -5.4957295079856,
         -8.81936600957249, -10.067544439232659, -8.195276794742409, -9.443455224402575,
         5.96169434166632, 9.114987216597266, 9.147834017377798, 12.301126892308746},
        {0, 5.4272042023997455, -6.72538245981366, 6.084869844593311},
        {10, 26, 42, 58}}},
      {"group_norm, one group",
       HT_CALL(group_norm(in[0], 1)),
       {{2, 2, 3}},
       {-1.1180314731819103, 0.22360629463638204, 1.5652440624546744, -0.44721258927276414,
        0.8944251785455282, -1.1180314731819103, 2.2932599388701073e-17, 1.5491886909238652,
        -0.7745943454619326, 0.7745943454619326, -1.5491886909238652, 2.2932599388701073e-17},
       {{-1.6770472097728653, -1.006228325863719, -0.3354094419545728, 0.33540944195457323,
         1.0062283258637192, 1.6770472097728657, -1.9364858636548306, -0.38730182026915383,
         -0.7745920216928379, 0.7745920216928388, 0.3873018202691556, 1.9364858636548332}}},
      {"group_norm, features",
       HT_CALL(group_norm(in[0], 2, in[1])),
       {{3, 6}, {6}},
       {-1.2247425750014138, 0, 0, -0.5345207657251487, -1.3363019143128718, -1.0690415314502975,
        -0.2672603828625744, -2.6726038286257436, 0, 2.138083062900595, 1.3363019143128718,
        0.2672603828625744, 1.0690415314502975, 2.6726038286257436, 0, -2.4494851500028276, 0,
        1.2247425750014138},
       {{0.9185580794429187, -1.8371138625021208, 0.918555783059202, 2.9207811792274723,
         -0.9736263701460688, -1.9471548090814035, 6.356989783370748, -2.119046419107992,
         -4.237943364262758, -0.8017089887482332, -0.40098077409322386, 1.202689762841457,
         -0.22898607858164866, -0.11465797606680184, 0.3436440546484487, 8.573214099695914,
         -17.146396050019796, 8.57318195032388},
        {10.801974653814431, -8.017811485877232, -1.9382403151098193, -9.974507416969944,
         -8.01781148587723, 18.838241755674556}}},
      {"group_norm, a group for each channel",
       HT_CALL(group_norm(in[0], 2, std::nullopt, in[1])),
       {{2, 2, 3}, {2}},
       {-0.2247425750014138, 1, 2.2247425750014136, -2.2672603828625744, -0.6636980856871282,
        -3.0690415314502975, 0.7327396171374256, 2.336301914312872, -0.06904153145029746,
        -0.9309584685497025, -3.336301914312872, -1.7327396171374256},
       {{-2.296383716737793e-06, 0, 2.296383716737793e-06, -0.859050862467257, 0.2863485693976693,
         0.5727022930695882, -0.8590508624672575, 0.2863485693976697, 0.5727022930695878,
         -0.572702293069586, -0.28634856939766706, 0.8590508624672584},
        {30, 48}}},
      {"group_norm, one element a group",
       HT_CALL(group_norm(in[0], 3, in[1], in[2])),
       {{2, 3}, {3}, {3}},
       {-1, 1, -2, -1, 1, -2},
       {{0, 0, 0, 0, 0, 0}, {0, 0, 0}, {5, 7, 9}}},
      {"instance_norm",
       HT_CALL(instance_norm(in[0], in[1], in[2])),
       {{2, 2, 4}, {2}, {2}},
       {-2.1832132521355803, -0.8309695354092028, 0.5212741813171748, -1.5070913937723915,
        -0.014182787544783304, 4.042548362634349, 1.3380609291815944, -1.366426504271161,
        -1.447211806656309, 0.341635419968927, -2.341635419968927, -0.552788193343691,
        -1.529817068505626, 2.264908534252813, -0.264908534252813, 3.529817068505626},
       {{-0.6761234037775147, -0.3863551268626328, -0.09658684994775088, 1.1590653805878983,
         2.3181307611757966, -0.19317369989550176, -0.7727102537252656, -1.3522468075550294,
         -1.3416354199689269, -0.447211806656309, 0.447211806656309, 1.3416354199689269,
         0.6324593267403051, 1.2649060044458638, -1.2649060044458638, -0.6324593267403051},
        {1.690304645907972, -1.4719666897240604},
        {52, 84}}},
      {"instance_norm, images",
       HT_CALL(instance_norm(in[0], std::nullopt, std::nullopt, 0.1)),
       {{1, 2, 3, 2}},
       {-1.0936965981495177, 0.2187393196299035, 1.5311752374093246, -0.43747863925980707,
        0.874957278519614, -1.0936965981495177, 0, 1.5047095877265575, -0.7523547938632787,
        0.7523547938632787, -1.5047095877265575, 0},
       {{-1.6405448972242764, -0.9843269383345659, -0.3281089794448552, 0.32810897944485523,
         0.9843269383345659, 1.6405448972242764, -1.8808869846581968, -0.4187635173389947,
         -0.7310617336596011, 0.7310617336596011, 0.4187635173389947, 1.8808869846581968}}},
      {"instance_norm, volumes",
       HT_CALL(instance_norm(in[0], in[1])),
       {{2, 1, 2, 1, 3}, {1}},
       {-1.11803147318191, 0.22360629463638199, 1.565244062454674, -0.447212589272764,
        0.8944251785455279, -1.11803147318191, 0, 1.5491886909238652, -0.7745943454619326,
        0.7745943454619326, -1.5491886909238652, 0},
       {{-1.677047209772865, -1.006228325863719, -0.3354094419545729, 0.33540944195457295,
         1.006228325863719, 1.677047209772865, -1.9364858636548314, -0.38730182026915394,
         -0.7745920216928388, 0.7745920216928388, 0.38730182026915394, 1.9364858636548314},
        {-3.8729717273096633}}},
      {"rms_norm",
       HT_CALL(rms_norm(in[0], {3})),
       {{2, 3}},
       {-1.224744871391589, 0, 1.224744871391589, -0.7071067811865475, 0.7071067811865475,
        -1.414213562373095},
       {{1.224744871391589, 1.224744871391589, 1.224744871391589, 1.532064692570853,
         4.831896338108074, 1.649915822768611}}},
      {"rms_norm, two axes",
       HT_CALL(rms_norm(in[0], {2, 2}, in[1], 0.25)),
       {{3, 2, 2}, {2, 2}},
       {-1.2649110640673518, 0, 0, -1.2649110640673518, 0.6324555320336759, 2.5298221281347035, 0,
        2.5298221281347035, -0.7559289460184544, -1.5118578920369088, 0, 0},
       {{-0.6324555320336761, -2.5298221281347035, 1.264911064067352, 4.427188724235731,
         -0.6957010852370438, 0.12649110640673644, 0, 2.4033310217279675, 3.671654880661065,
         -11.986873286864064, -6.263411267010049, 18.142294704442904},
        {-4.905993918065062, -0.03017692421956575, -12.83570362020394, 7.58946638440411}}},
      {"rms_norm, one",
       HT_CALL(rms_norm(in[0], {1}, in[1], 1e-3)),
       {{4, 1}, {1}},
       {-0.9998750234326181, 0, 0.9998750234326181, -0.9995003746877732},
       {{0.00012495313964427934, 63.24555320336759, 0.00037485941893300456, 0.003994007491259666},
        {-1.9982514518858563}}},
  };
  return *rows;
}

TEST(GroupNorms, ValuesAndGradientsArePyTorchs) {
  for (const TorchWholeRow& row : NormRows()) CheckTorchWholeRow(row);
}

// 300^2 is no f16, and in bf16 a mean of 1000 would swallow deviations of 1.
TEST(GroupNorms, StatisticsAreF32) {
  FnGraph graph([](const Values& in) -> Values {
    return {group_norm(in[0], 1), instance_norm(in[0]), group_norm(in[1], 1)};
  });
  const std::vector<Tensor> out =
      Call(graph, {Tensor::Of(DType::kF16, {1, 2, 2}, {-300, 300, 300, -300}),
                   Tensor::Of(DType::kBF16, {1, 2, 2}, {1000, 1008, 1008, 1000})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(out[0].ToVector(), ElementsAre(-1, 1, 1, -1));
  EXPECT_THAT(out[1].ToVector(), ElementsAre(-1, 1, 1, -1));
  EXPECT_THAT(out[2].ToVector(), ElementsAre(-1, 1, 1, -1));
}

// Under mixed precision parameters stay f32, and so do the statistics.
TEST(GroupNorms, MixedPrecision) {
  GroupNorm group(2, 4);
  InstanceNorm2d instance(4, {.affine = true});
  FnGraph graph([&](const Values& in) -> Values {
    const Value y = instance(group(in[0]));
    sum(y * y).backward();
    return {y};
  });
  graph.add_module("group", group);
  graph.add_module("instance", instance);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0}));
  const Shape shape{2, 4, 3, 5};
  const Tensor x = Tensor::Of(DType::kF32, shape, Whole(shape, 0));
  const std::vector<double> wide = Call1(graph, {x});
  graph.config.enable_amp(true, {.dtype = DType::kBF16});
  const std::vector<double> low = Call1(graph, {x});
  ASSERT_EQ(low.size(), wide.size());
  for (size_t i = 0; i < low.size(); ++i) EXPECT_NEAR(low[i], wide[i], 0.03) << i;
  for (const auto& node : graph.compiled_graph()->nodes()) {
    if (node->op().name != "batch_norm") continue;
    for (int port = 1; port < node->num_inputs(); ++port) {
      EXPECT_EQ(node->input_type(port).dtype, DType::kF32);
    }
  }
}

TEST(GroupNorms, NoImages) {
  FnGraph graph([](const Values& in) -> Values {
    const Value y = group_norm(in[0], 2, in[1]) + instance_norm(in[0], in[1]);
    return {y, gradients(sum(y), {in[1]})[0]};
  });
  const std::vector<Tensor> out = Call(graph, {F32({0, 4, 3}, {}), F32({4}, {1, 1, 1, 1})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].TypeString(), "f32[0,4,3]");
  EXPECT_THAT(out[1].ToVector(), ElementsAre(0, 0, 0, 0));
}

TEST(GroupNorms, Errors) {
  const auto expect = [](FnGraph::Fn fn, const char* message) {
    FnGraph graph(std::move(fn));
    EXPECT_THAT(
        Message(CallStatus(
            graph, {Tensor::Zeros(DType::kF32, {2, 4, 3}), Tensor::Zeros(DType::kF32, {3}),
                    Tensor::Zeros(DType::kI64, {2, 4, 3}), Tensor::Zeros(DType::kF32, {2, 4, 1})})),
        HasSubstr(message));
  };
#define HT_EXPECT(call, message) expect([](const Values& in) -> Values { return {call}; }, message)
  HT_EXPECT(group_norm(in[0], 3), "group_norm: num_groups is 3; expected a divisor of 4 channels");
  HT_EXPECT(group_norm(in[0], 0), "group_norm: num_groups is 0; expected a divisor of 4 channels");
  HT_EXPECT(group_norm(in[0], 2, in[1]), "group_norm: weight is f32[3]; expected [4]");
  HT_EXPECT(group_norm(in[0], 2, std::nullopt, in[1]), "group_norm: bias is f32[3]; expected [4]");
  HT_EXPECT(group_norm(in[1], 1), "group_norm: x is f32[3]; expected rank 2 or more");
  HT_EXPECT(group_norm(in[2], 2), "group_norm: x is i64[2,4,3]; expected a floating-point value");
  HT_EXPECT(group_norm(in[0], 2, std::nullopt, std::nullopt, -1), "eps is -1; expected 0 or more");
  HT_EXPECT(instance_norm(in[3]),
            "instance_norm: x is f32[2,4,1]; expected more than one element a channel of an image");
  HT_EXPECT(instance_norm(in[0], in[1]), "instance_norm: weight is f32[3]; expected [4]");
  HT_EXPECT(rms_norm(in[0], {4}),
            "rms_norm: x is f32[2,4,3]; expected a floating-point value of last axes [4]");
  HT_EXPECT(rms_norm(in[0], {}), "expected a floating-point value of last axes []");
  HT_EXPECT(rms_norm(in[3], {1}, in[1]), "rms_norm: weight is f32[3]; expected [1]");
#undef HT_EXPECT
}

TEST(GroupNormLayers, DefaultsArePyTorchs) {
  EXPECT_THAT(GroupNorm(2, 4).weight.value().ToVector(), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(GroupNorm(2, 4).bias.value().ToVector(), ElementsAre(0, 0, 0, 0));
  EXPECT_FALSE(InstanceNorm1d(4).weight.defined());
  EXPECT_TRUE(InstanceNorm3d(4, {.affine = true}).bias.defined());
  EXPECT_TRUE(InstanceNorm2d(4).named_buffers().empty());
  EXPECT_EQ(GroupNorm(2, 4).description(), "GroupNorm(2, 4)");
  EXPECT_EQ(InstanceNorm3d(4).description(), "InstanceNorm3d(4)");
  EXPECT_EQ(SyncBatchNorm(4).description(), "SyncBatchNorm(4)");
  EXPECT_EQ(Message(GroupNorm(3, 4).status()),
            "GroupNorm: num_groups is 3; expected a divisor of 4 channels");
  EXPECT_EQ(Message(GroupNorm(0, 4).status()), "GroupNorm: num_groups is 0; expected at least 1");
  EXPECT_EQ(Message(InstanceNorm2d(0).status()),
            "InstanceNorm2d: num_features is 0; expected at least 1");
  EXPECT_EQ(Message(SyncBatchNorm(0).status()),
            "SyncBatchNorm: num_features is 0; expected at least 1");
  GroupNorm norm(2, 4);
  FnGraph graph([&](const Values& in) -> Values { return {norm(in[0])}; });
  graph.add_module("norm", norm);
  EXPECT_THAT(Message(CallStatus(graph, {Tensor::Zeros(DType::kF32, {2, 6, 3})})),
              HasSubstr("GroupNorm: x is f32[2,6,3]; expected 4 channels along axis 1"));
}

// A batch of volumes is normalised as its channels are in any other shape.
TEST(BatchNorms, OfEveryRank) {
  SyncBatchNorm sync(2);
  BatchNorm3d volumes(2);
  BatchNorm1d rows(2);
  FnGraph graph([&](const Values& in) -> Values {
    return {sync(in[0]), volumes(in[0]), reshape(rows(reshape(in[0], {3, 2, 8})), {3, 2, 2, 1, 4})};
  });
  graph.add_module("sync", sync);
  graph.add_module("volumes", volumes);
  graph.add_module("rows", rows);
  const Shape shape{3, 2, 2, 1, 4};
  const std::vector<double> x = Whole(shape, 0);
  const std::vector<Tensor> out = Call(graph, {Tensor::Of(DType::kF32, shape, x)});
  ASSERT_EQ(out.size(), 3u);
  for (int64_t channel = 0; channel < 2; ++channel) {
    double mean = 0, square = 0;
    const auto of_channel = [&](size_t i) { return static_cast<int64_t>(i) / 8 % 2 == channel; };
    for (size_t i = 0; i < x.size(); ++i) {
      if (!of_channel(i)) continue;
      mean += x[i] / 24;
      square += x[i] * x[i] / 24;
    }
    const double variance = square - mean * mean;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!of_channel(i)) continue;
      for (const Tensor& y : out) {
        EXPECT_NEAR(y.at(static_cast<int64_t>(i)), (x[i] - mean) / std::sqrt(variance + 1e-5),
                    1e-5);
      }
    }
    for (const Parameter& moved : {sync.running_var, volumes.running_var, rows.running_var}) {
      EXPECT_NEAR(moved.value().at(channel), 0.9 + 0.1 * variance * 24 / 23, 1e-5);
    }
  }
  graph.eval();
  EXPECT_EQ(Call(graph, {Tensor::Of(DType::kF32, shape, x)}).at(1).shape(), shape);
}

}  // namespace
}  // namespace halftone::nn
