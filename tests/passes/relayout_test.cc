// The relayout op: its inference, and its kernel from layout to layout.
#include <gtest/gtest.h>

#include "halftone/core/device.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/kernels/kernel.h"

namespace halftone {
namespace {

using ir::Layout;

// Runs the reference kernel of relayout(x) {to} on raw bytes.
std::vector<float> Relay(const ir::ValueType& type, const std::string& to,
                         const std::vector<float>& x) {
  ir::Graph graph;
  ir::Builder b(&graph);
  ir::Expr in = b.Input("x", type);
  in.value().node->mutable_output_types()[0].layout = type.layout;
  const ir::Expr y = b.Op("relayout", {in}, {{"to", to}});
  EXPECT_TRUE(b.status().ok()) << b.status();
  auto kernel = kernels::KernelRegistry::Global().Select(*y.value().node, Device::Kind::kReference);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  std::vector<float> result(x.size());
  const void* inputs[] = {x.data()};
  void* outputs[] = {result.data()};
  kernels::RunState state;
  (*kernel)->Run({inputs, outputs, nullptr, &state});
  return result;
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
  EXPECT_EQ(Message(to), "relayout: attribute to is \"nchw\"; expected \"nhwc\" or \"plain\"");
}

}  // namespace
}  // namespace halftone
