// Graph::set_profile: which kernels a call tells of.
#include "halftone/kernels/kernel.h"
#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Profile, TellsOfEveryKernelOfEveryCallWhileSet) {
  FnGraph graph([](const Values& in) { return Values{tanh(in[0] + in[1])}; });
  std::vector<std::string> seen;
  double seconds = 0;
  const auto note = [&](const ir::Node& node, const kernels::Kernel& kernel, double s) {
    seen.push_back(node.op().name + " by " + kernel.name());
    seconds += s;
  };
  // Compiled before it is set, and while it is.
  Call(graph, {F32({2}, {1, 2}), F32({2}, {3, 4})});
  EXPECT_THAT(seen, IsEmpty());
  graph.set_profile(note);
  for (const int64_t extent : {2, 3}) {
    seen.clear();
    const Tensor x = Tensor::Zeros(DType::kF32, {extent});
    Call(graph, {x, x});
    EXPECT_THAT(seen, ElementsAre("add by cpu:simd:add", "tanh by cpu:simd:tanh"));
  }
  EXPECT_GT(seconds, 0);
  seen.clear();
  graph.set_profile(nullptr);
  Call(graph, {F32({2}, {1, 2}), F32({2}, {3, 4})});
  EXPECT_THAT(seen, IsEmpty());
}

}  // namespace
}  // namespace halftone::nn
