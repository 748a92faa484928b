// Fused nodes beside channels in blocks that read numbers of the channels, which no table of cases has, since they
// are not fused with plain values. Rows of a block below, of and above a tile of 1,024 elements.
#include <gtest/gtest.h>

#include "halftone/graph/ir/builder.h"
#include "halftone/tests/kernels/cpu_check.h"
#include "halftone/tests/kernels/simd_levels.h"

namespace halftone::testing {
namespace {

void CheckFused(const std::string& body, const Shape& numbers, DType dtype, int64_t height,
                int64_t width) {
  const OpCase c = Case("fused", "channels",
                        {Reals({3, 48, height, width}), Pinned(Reals({1, 48, 1, 1}, 0.5, 1.5)),
                         Pinned(Reals(numbers))});
  const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
  ir::Graph graph;
  ir::Builder b(&graph);
  std::vector<ir::Expr> operands;
  for (const Tensor& input : inputs) {
    operands.push_back(b.Input(Concat("x", operands.size()), {input.dtype(), input.shape()}));
  }
  operands[0].value().node->mutable_output_types()[0].layout = ir::Layout::kChannelBlocks;
  const ir::Expr y = b.Op("fused", operands, {{"body", body}});
  ASSERT_TRUE(b.status().ok()) << b.status();
  const ir::Node& node = *y.value().node;
  EXPECT_EQ(node.output_type().layout, ir::Layout::kChannelBlocks);
  for (const SimdLevel level : SimdLevelsHere()) {
    const ForcedSimdLevel forced(level);
    auto kernel = kernels::KernelRegistry::Global().Select(node, Device::Kind::kCpu);
    ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
    EXPECT_EQ((*kernel)->name(), "cpu:tiles:fused");
    EXPECT_TRUE(Agrees(**kernel, node, inputs)) << body << " in " << Name(dtype) << ", " << height
                                                << " by " << width << ", " << Name(level);
  }
}

TEST(ChannelBlocks, FusedNodesReadNumbersOfChannels) {
  for (const auto& [height, width] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, 5}, {8, 8}, {11, 13}}) {
    CheckFused("relu(add(mul(%0, %1), %2))", {48, 1, 1}, DType::kF32, height, width);
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      CheckFused("tanh(batch_norm_apply(%0, %1, %2, %1, %2))", {1, 48, 1, 1}, dtype, height, width);
    }
  }
}

}  // namespace
}  // namespace halftone::testing
