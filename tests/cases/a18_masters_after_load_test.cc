// A18, NVIDIA/apex PR#42: loading wrote the 16-bit weights after the f32 masters had been made, and
// the first step copied the stale masters back; elsewhere masters were rebuilt from 16 bit.
#include <cmath>

#include "halftone/tests/cases/case_util.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

const Tensor kOne = Tensor::Of(DType::kF32, {1, 1}, {1});

// y = w x, in 16 bit where `low` says so, with SGD; the gradient of w is x.
class Weight : public FnGraph {
 public:
  Weight(double value, std::optional<DType> low)
      : FnGraph([](FnGraph& g, const nn::Values& in) -> nn::Values {
          const nn::Value y = nn::matmul(g.param("w"), in[0]);
          nn::sum(y).backward();
          return {y};
        }) {
    if (low.has_value()) config.enable_amp(true, {.dtype = low});
    w = AddParam("w", Tensor::Of(DType::kF32, {1, 1}, {value}));
    add_optimizer(optim::SGD(parameters(), {.lr = 0.1}));
  }
  nn::Parameter w;
};

std::string SavedWith(const TempDir& dir, double value, std::optional<DType> low) {
  Weight graph(value, low);
  EXPECT_TRUE(graph.save_checkpoint(dir.Path("c")).ok());
  return dir.Path("c");
}

// What the graph computes with, rounded as the product's operand is.
double EvaluationOf(Weight& graph) {
  graph.eval();
  const std::vector<Tensor> out = Step(graph, {kOne});
  graph.train();
  return out.empty() ? NAN : out[0].item();
}

TEST(CaseA18, TheFirstStepStartsAtTheLoadedValue) {
  for (const Device& device : CaseDevices()) {
    for (const std::optional<DType> low :
         {std::optional<DType>(), std::optional(DType::kF16), std::optional(DType::kBF16)}) {
      for (const bool compiled : {false, true}) {
        const TempDir dir;
        Weight graph(0, low);
        graph.to(device);
        ASSERT_TRUE(graph.initialize().ok());
        if (compiled) {
          ASSERT_TRUE(graph.compile({kOne}).ok());
        }
        ASSERT_TRUE(graph.load_checkpoint(SavedWith(dir, 5, {})).ok());
        if (low == DType::kF16) {
          // The automatic scaler begins at 65536, which overflows: a skipped step proves nothing.
          ASSERT_TRUE(graph.compile({kOne}).ok());
          ASSERT_TRUE(graph.grad_scaler().set_scale(1024).ok());
        }
        Step(graph, {kOne});
        EXPECT_FALSE(graph.last_step_skipped());
        // 4.9 in f32, with one rounding of lr, of the product and of the difference.
        EXPECT_NEAR(graph.w.value().item(), 4.9, 3 * 0x1p-22);
      }
    }
  }
}

TEST(CaseA18, AMasterPassesThroughAnF16GraphUnchanged) {
  const TempDir dir;
  const std::string path = SavedWith(dir, 2049, {});
  Weight half(0, DType::kF16);
  ASSERT_TRUE(half.compile({kOne}).ok());
  const auto into_half = half.load_checkpoint(path);
  ASSERT_TRUE(into_half.ok()) << into_half.status();
  EXPECT_EQ(half.w.value().item(), 2049);
  EXPECT_EQ(EvaluationOf(half), 2048) << "2049 lies half way between two f16; even wins";
  ASSERT_TRUE(half.save_checkpoint(path).ok());

  Weight plain(0, {});
  const auto into_plain = plain.load_checkpoint(path);
  ASSERT_TRUE(into_plain.ok()) << into_plain.status();
  EXPECT_EQ(plain.w.value().item(), 2049);
  EXPECT_EQ(EvaluationOf(plain), 2049);
}

TEST(CaseA18, AMasterBetweenTwoBf16IsKeptBitForBit) {
  const TempDir dir;
  const double value = 1.0010766F;
  const std::string path = SavedWith(dir, value, DType::kBF16);
  Weight graph(0, DType::kBF16);
  ASSERT_TRUE(graph.compile({kOne}).ok());
  ASSERT_TRUE(graph.load_checkpoint(path).ok());
  EXPECT_EQ(EvaluationOf(graph), 1) << "the bf16 view";
  EXPECT_EQ(graph.w.value().item(), value);
}

}  // namespace
}  // namespace halftone::testing
