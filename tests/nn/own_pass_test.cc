// GraphConfig::add_pass: a pass of the program in the compilations of a graph.
#include <fstream>

#include "halftone/graph/ir/builder.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::nn {
namespace {

using ::halftone::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Adds a number to each operand of exp: exp(x) becomes exp(x + shift).
class ShiftExp : public passes::Pass {
 public:
  explicit ShiftExp(double shift) : shift_(shift) {}
  const char* name() const override { return "shift-exp"; }
  absl::StatusOr<bool> Run(ir::Graph& graph, passes::PassContext& context) override {
    for (ir::Node* node : passes::Snapshot(graph)) {
      if (!passes::IsOp(*node, "exp")) continue;
      ir::Builder b = passes::BuilderLike(*node, name());
      node->set_input(0, (b.Wrap(node->input(0)) + shift_).value());
      ++context.stats["shifted"];
    }
    return context.stats["shifted"] > 0;
  }

 private:
  double shift_;
};

TEST(OwnPass, ItsWorkIsRunAndDifferentiated) {
  FnGraph graph([](const Values& in) {
    const Value y = exp(in[0]);
    return Values{y, gradients(sum(y), {in[0]})[0]};
  });
  graph.config.add_pass(passes::Stage::kForward, std::make_shared<ShiftExp>(1));
  const std::vector<Tensor> out = Call(graph, {F32({2}, {-1, 0})});
  EXPECT_EQ(out[0].at(0), 1);
  EXPECT_FLOAT_EQ(static_cast<float>(out[0].at(1)), 2.7182818F);
  EXPECT_EQ(out[1].at(0), 1);
}

TEST(OwnPass, IsPartOfWhatACompiledStepDependsOn) {
  FnGraph graph([](const Values& in) { return Values{exp(in[0])}; });
  const Tensor x = F32({1}, {-1});
  const GraphConfig without = graph.config;
  graph.config.add_pass(passes::Stage::kForward, std::make_shared<ShiftExp>(1));
  const GraphConfig with = graph.config;
  EXPECT_THAT(Call1(graph, {x}), ElementsAre(1));
  graph.config = without;
  EXPECT_THAT(Call1(graph, {x}), ElementsAre(::testing::DoubleNear(0.36787944, 1e-7)));
  EXPECT_EQ(graph.builds, 2);
  // A step compiled before is found again; another object is another pass.
  graph.config = with;
  EXPECT_THAT(Call1(graph, {x}), ElementsAre(1));
  EXPECT_EQ(graph.builds, 2);
  graph.config = without;
  graph.config.add_pass(passes::Stage::kForward, std::make_shared<ShiftExp>(1));
  EXPECT_THAT(Call1(graph, {x}), ElementsAre(1));
  EXPECT_EQ(graph.builds, 3);
}

TEST(OwnPass, IsDumpedAsEveryPass) {
  const TempDir dir;
  FnGraph graph([](const Values& in) { return Values{exp(in[0])}; });
  graph.config.dump_dir = dir.path();
  graph.config.add_pass(passes::Stage::kForward, std::make_shared<ShiftExp>(1));
  ASSERT_TRUE(graph.compile({F32({1}, {0})}).ok());
  std::ifstream file(dir.path() + "/graph_0/01_shift-exp.txt");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, HasSubstr("add("));
  EXPECT_THAT(text, HasSubstr("shift-exp"));
}

TEST(OwnPass, ItsErrorComesFromTheCall) {
  FnGraph graph([](const Values& in) { return Values{exp(in[0])}; });
  graph.config.add_pass(passes::Stage::kStep, nullptr);
  const absl::Status status = CallStatus(graph, {F32({1}, {0})});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), "add_pass: got no pass");
}

}  // namespace
}  // namespace halftone::nn
