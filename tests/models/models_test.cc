// The models of examples/models: parameter counts by the papers' reference implementations, shapes,
// and names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/examples/models/dcgan.h"
#include "halftone/examples/models/edsr.h"
#include "halftone/examples/models/resnet.h"
#include "halftone/examples/models/ssd512.h"
#include "halftone/examples/models/transformer.h"
#include "halftone/tests/nn/fn_graph.h"

namespace halftone::models {
namespace {

using nn::Call;
using nn::FnGraph;
using nn::Values;
using ::testing::Contains;
using ::testing::HasSubstr;

int64_t NumParameters(const nn::Module& module) {
  int64_t count = 0;
  for (const auto& p : module.named_parameters()) count += p.second.shape().num_elements();
  return count;
}

// The outputs of one evaluation.
std::vector<Tensor> Evaluate(nn::Module& module, const std::vector<Tensor>& in) {
  FnGraph graph([&module](const Values& values) -> Values { return {module(values[0])}; });
  graph.add_module("model", module);
  graph.eval();
  return Call(graph, in);
}

// Counts of torchvision's resnet18, 34, 50 and 101.
TEST(Models, ResNetHasTheParametersOfTorchvision) {
  EXPECT_EQ(NumParameters(ResNet(18)), 11689512);
  EXPECT_EQ(NumParameters(ResNet(34)), 21797672);
  EXPECT_EQ(NumParameters(ResNet(50)), 25557032);
  EXPECT_EQ(NumParameters(ResNet(101)), 44549160);
  std::vector<std::string> names;
  for (const auto& p : ResNet(50).named_parameters()) names.push_back(p.first);
  for (const char* name : {"conv1.weight", "bn1.bias", "layer1.0.downsample.0.weight",
                           "layer2.3.conv3.weight", "layer4.2.bn3.weight", "fc.bias"}) {
    EXPECT_THAT(names, Contains(name));
  }
}

TEST(Models, ResNetGivesScores) {
  ResNet net(18, 10, 1);
  const std::vector<Tensor> out = Evaluate(net, {Tensor::Full(DType::kF32, {2, 1, 32, 64}, 0.5)});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].shape(), (Shape{2, 10}));
}

TEST(Models, ResNetNamesAnotherDepth) {
  EXPECT_EQ(Message(ResNet(49).status()), "ResNet: depth is 49; expected 18, 34, 50 or 101");
}

TEST(Models, TransformersHaveTheParametersOfTheWorkloads) {
  EXPECT_EQ(NumParameters(Transformer(BertBase())), 108595200);
  EXPECT_EQ(NumParameters(Transformer(Gpt2Small(256))), 123849984);
  // GPT-2's own, "124M", with its 1,024 positions.
  EXPECT_EQ(NumParameters(Transformer(Gpt2Small())), 124439808);
}

// What a position gives depends on those before it alone.
TEST(Models, ADecoderDoesNotLookAhead) {
  for (bool causal : {true, false}) {
    Transformer net({.vocabulary = 11,
                     .positions = 6,
                     .width = 8,
                     .heads = 2,
                     .inner = 16,
                     .blocks = 2,
                     .causal = causal,
                     .pre_norm = causal});
    const auto a = Evaluate(net, {Tensor::Of(DType::kI64, {1, 5}, {1, 2, 3, 4, 5})});
    const auto b = Evaluate(net, {Tensor::Of(DType::kI64, {1, 5}, {1, 2, 3, 4, 9})});
    ASSERT_EQ(a.size(), 1u);
    ASSERT_EQ(a[0].shape(), (Shape{1, 5, 11}));
    bool same = true;
    for (int64_t i = 0; i < 4 * 11; ++i) same = same && a[0].at(i) == b[0].at(i);
    EXPECT_EQ(same, causal);
  }
}

TEST(Models, ATooLongSequenceIsAnError) {
  Transformer net(
      {.vocabulary = 11, .positions = 4, .width = 8, .heads = 2, .inner = 16, .blocks = 1});
  FnGraph graph([&net](const Values& in) -> Values { return {net(in[0])}; });
  graph.add_module("model", net);
  EXPECT_THAT(Message(graph({Tensor::Zeros(DType::kI64, {1, 5})}).status()),
              HasSubstr("shapes [1,5,8] and [4,8] do not broadcast"));
}

TEST(Models, EdsrEnlargesFourTimes) {
  EXPECT_EQ(NumParameters(Edsr()), 1517571);
  Edsr net(4, 1);
  const auto out = Evaluate(net, {Tensor::Full(DType::kF32, {1, 3, 5, 7}, 0.5)});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].shape(), (Shape{1, 3, 20, 28}));
}

TEST(Models, Ssd512HasTheParametersOfTheWorkload) { EXPECT_EQ(NumParameters(Ssd512()), 32956484); }

// Two images of four anchors and three classes. Image 0: one object (anchor 1), so three of its three
// backgrounds count; image 1 has none, so nothing of it counts. Scores: all 0, so each cross-entropy
// is log 3. Boxes: 0; targets 0.5, so each smooth L1 is 0.125, four of them an object.
TEST(Models, MultiboxLossTakesThreeBackgroundsAnObject) {
  FnGraph graph(
      [](const Values& in) -> Values { return {MultiboxLoss(in[0], in[1], in[2], in[3])}; });
  const Tensor scores = Tensor::Zeros(DType::kF32, {2, 5, 3});
  const Tensor boxes = Tensor::Zeros(DType::kF32, {2, 5, 4});
  const Tensor targets = Tensor::Full(DType::kF32, {2, 5, 4}, 0.5);
  const Tensor labels = Tensor::Of(DType::kI64, {2, 5}, {0, 2, 0, 0, 0, 0, 0, 0, 0, 0});
  const auto out = Call(graph, {scores, boxes, labels, targets});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_NEAR(out[0].item(), 4 * std::log(3.0) + 4 * 0.125, 1e-6);

  // The hardest are taken: of image 0's backgrounds the one whose loss is log(2 + e^-9) is left.
  Tensor one = scores.Clone();
  one.set(4 * 3 + 0, 9);  // the last anchor is sure to be a background
  const auto harder = Call(graph, {one, boxes, labels, targets});
  EXPECT_NEAR(harder[0].item(), 4 * std::log(3.0) + 4 * 0.125, 1e-6);
  one.set(4 * 3 + 0, 0);
  one.set(4 * 3 + 1, 9);  // and now that it is an object: log(2 + e^9), taken first
  const auto wrong = Call(graph, {one, boxes, labels, targets});
  EXPECT_NEAR(wrong[0].item(), 3 * std::log(3.0) + std::log(2 + std::exp(9.0)) + 4 * 0.125, 1e-5);
  // No object at all: nothing to learn, over at least one.
  const auto none = Call(graph, {scores, boxes, Tensor::Zeros(DType::kI64, {2, 5}), targets});
  EXPECT_EQ(none[0].item(), 0);
}

// Counts of PyTorch's DCGAN tutorial.
TEST(Models, DcganHasTheParametersOfTheTutorial) {
  EXPECT_EQ(NumParameters(DcganGenerator()), 3576704);
  EXPECT_EQ(NumParameters(DcganDiscriminator()), 2765568);
  DcganGenerator generator(7, 2, 1);
  DcganDiscriminator discriminator(2, 1);
  const auto images = Evaluate(generator, {Tensor::Full(DType::kF32, {3, 7, 1, 1}, 0.5)});
  ASSERT_EQ(images.size(), 1u);
  ASSERT_EQ(images[0].shape(), (Shape{3, 1, 64, 64}));
  const auto scores = Evaluate(discriminator, images);
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_EQ(scores[0].shape(), Shape{3});
}

TEST(Models, DcganMakesOtherExtents) {
  for (const int64_t extent : {8, 32}) {
    DcganGenerator generator(7, 2, 1, extent);
    DcganDiscriminator discriminator(2, 1, extent);
    const auto images = Evaluate(generator, {Tensor::Full(DType::kF32, {3, 7, 1, 1}, 0.5)});
    ASSERT_EQ(images.size(), 1u);
    ASSERT_EQ(images[0].shape(), (Shape{3, 1, extent, extent}));
    EXPECT_EQ(Evaluate(discriminator, images)[0].shape(), Shape{3});
  }
  EXPECT_EQ(Message(DcganGenerator(7, 2, 1, 48).status()),
            "DcganGenerator: extent is 48; expected a power of two from 8");
  EXPECT_EQ(Message(DcganDiscriminator(2, 1, 4).status()),
            "DcganDiscriminator: extent is 4; expected a power of two from 8");
}

}  // namespace
}  // namespace halftone::models
