// The relayout op: its inference, and its kernel from layout to layout.
#include <gtest/gtest.h>

#include "halftone/core/device.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/kernels/kernel.h"

namespace halftone {
namespace {

using ir::Layout;

// Runs a kernel of relayout(x) {to} on raw bytes.
std::vector<float> RelayOn(Device::Kind device, const ir::ValueType& type, const std::string& to,
                           const std::vector<float>& x) {
  ir::Graph graph;
  ir::Builder b(&graph);
  ir::Expr in = b.Input("x", type);
  in.value().node->mutable_output_types()[0].layout = type.layout;
  const ir::Expr y = b.Op("relayout", {in}, {{"to", to}});
  EXPECT_TRUE(b.status().ok()) << b.status();
  auto kernel = kernels::KernelRegistry::Global().Select(*y.value().node, device);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  std::vector<float> result(x.size());
  const void* inputs[] = {x.data()};
  void* outputs[] = {result.data()};
  kernels::RunState state;
  (*kernel)->Run({inputs, outputs, nullptr, &state});
  return result;
}

// Both kernels of it, which agree.
std::vector<float> Relay(const ir::ValueType& type, const std::string& to,
                         const std::vector<float>& x) {
  const std::vector<float> y = RelayOn(Device::Kind::kReference, type, to, x);
  EXPECT_EQ(RelayOn(Device::Kind::kCpu, type, to, x), y);
  return y;
}

// [1,2,1,3]: channel 0 is 1 2 3, channel 1 is 4 5 6.
TEST(Relayout, MovesChannelsLastAndBack) {
  const std::vector<float> plain = {1, 2, 3, 4, 5, 6};
  const std::vector<float> last = {1, 4, 2, 5, 3, 6};
  const Shape shape{1, 2, 1, 3};
  EXPECT_EQ(Relay({DType::kF32, shape, Layout::kPlain}, "nhwc", plain), last);
  EXPECT_EQ(Relay({DType::kF32, shape, Layout::kChannelsLast}, "plain", last), plain);
  EXPECT_EQ(Relay({DType::kF32, shape, Layout::kChannelsLast}, "nhwc", last), last);
}

// [1,32,1,2]: channel c is 2 c, 2 c + 1; in blocks the 16 channels of a block lie side by side.
TEST(Relayout, MovesBlocksOfChannelsAndBack) {
  const Shape shape{1, 32, 1, 2};
  std::vector<float> plain, last, blocks;
  for (int i = 0; i < 64; ++i) {
    plain.push_back(static_cast<float>(i));
    last.push_back(static_cast<float>(2 * (i % 32) + i / 32));
    blocks.push_back(static_cast<float>(2 * (i / 32 * 16 + i % 16) + i / 16 % 2));
  }
  EXPECT_EQ(Relay({DType::kF32, shape, Layout::kPlain}, "nchw16c", plain), blocks);
  EXPECT_EQ(Relay({DType::kF32, shape, Layout::kChannelsLast}, "nchw16c", last), blocks);
  EXPECT_EQ(Relay({DType::kF32, shape, Layout::kChannelBlocks}, "nhwc", blocks), last);
  EXPECT_EQ(Relay({DType::kF32, shape, Layout::kChannelBlocks}, "plain", blocks), plain);
}

absl::Status Refusal(const Shape& shape, const std::string& to) {
  ir::Graph graph;
  ir::Builder b(&graph);
  b.Op("relayout", {b.Input("x", {DType::kF32, shape})}, {{"to", to}});
  return b.status();
}

TEST(Relayout, RefusesOtherRanksAndLayouts) {
  const absl::Status rank = Refusal({2, 3}, "nhwc");
  EXPECT_EQ(rank.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(rank), "relayout: x is f32[2,3]; expected rank 4");
  const absl::Status to = Refusal({1, 2, 3, 4}, "nchw");
  EXPECT_EQ(to.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(to),
            "relayout: attribute to is \"nchw\"; expected \"plain\", \"nhwc\" or \"nchw16c\"");
  EXPECT_EQ(Message(Refusal({1, 24, 3, 4}, "nchw16c")),
            "relayout: layout nchw16c of f32[1,24,3,4]; expected a multiple of 16 channels");
}

}  // namespace
}  // namespace halftone
