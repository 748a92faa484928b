// Passes of the program in the pipeline: where they run, and what they are held to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/text.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/passes/pipeline.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ::testing::HasSubstr;

class FnPass : public Pass {
 public:
  using Body = std::function<absl::StatusOr<bool>(ir::Graph&, PassContext&)>;
  FnPass(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  const char* name() const override { return name_.c_str(); }
  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    return body_(graph, context);
  }

 private:
  std::string name_;
  Body body_;
};

std::shared_ptr<Pass> MakeOwn(std::string name, FnPass::Body body) {
  return std::make_shared<FnPass>(std::move(name), std::move(body));
}
std::shared_ptr<Pass> IdleOwn(std::string name) {
  return MakeOwn(std::move(name), [](ir::Graph&, PassContext&) { return false; });
}

// Reads tanh(x) as sigmoid(x), and leaves the tanh to whoever tidies up.
std::shared_ptr<Pass> TanhToSigmoid() {
  return MakeOwn("tanh-to-sigmoid", [](ir::Graph& graph, PassContext&) -> absl::StatusOr<bool> {
    bool changed = false;
    for (ir::Node* node : Snapshot(graph)) {
      if (!IsOp(*node, "tanh")) continue;
      ir::Builder b = BuilderLike(*node, "tanh-to-sigmoid");
      graph.ReplaceUses(node->output(), b.Op("sigmoid", {b.Wrap(node->input(0))}).value());
      changed = true;
    }
    return changed;
  });
}

class OwnPassTest : public ::testing::Test {
 protected:
  OwnPassTest() { context_.target = *kernels::FindFixedTarget("cpu-avx2"); }

  absl::Status Run(const std::vector<OwnPass>& own) {
    graph_ = *ir::Parse(R"(graph @step(%x: f32[2,3]) {
      %w = variable "w" : f32[2,3]
      %h = mul(%x, %w)
      %y = tanh(%h)
      %l = mean(%y) {axes=[]}
      backward(%l)
      %n, %a = optimizer() {params=["w"], rule="sgd"}
      return %l
    })");
    return RunPipeline(*graph_, context_, {}, &summary_, own);
  }

  // The passes that ran, in order.
  std::vector<std::string> Order() const {
    std::istringstream lines(summary_);
    std::vector<std::string> names;
    for (std::string line; std::getline(lines, line);)
      names.push_back(line.substr(0, line.find(' ')));
    return names;
  }
  ptrdiff_t Position(const std::string& name) const {
    const std::vector<std::string> order = Order();
    return std::find(order.begin(), order.end(), name) - order.begin();
  }
  int64_t Count(const char* op) const {
    int64_t count = 0;
    for (const auto& node : graph_->nodes()) count += IsOp(*node, op) ? 1 : 0;
    return count;
  }

  PassContext context_;
  std::unique_ptr<ir::Graph> graph_;
  std::string summary_;
};

TEST_F(OwnPassTest, RunAtTheirStageInTheOrderGiven) {
  ASSERT_TRUE(Run({{Stage::kStep, IdleOwn("c")},
                   {Stage::kForward, IdleOwn("a")},
                   {Stage::kForward, IdleOwn("b")}})
                  .ok());
  EXPECT_LT(Position("eliminate-dead-code"), Position("a"));
  EXPECT_EQ(Position("a") + 1, Position("b"));
  EXPECT_EQ(Position("b") + 1, Position("sync-batch-norms"));
  EXPECT_EQ(Position("apply-numerics") + 1, Position("c"));
  EXPECT_EQ(Position("c") + 1, Position("decompose-unsupported"));
}

TEST_F(OwnPassTest, ForwardPassesComeBeforeGradients) {
  bool saw_marker = false, saw_gradient = false;
  const auto look = MakeOwn("look", [&](ir::Graph& graph, PassContext&) {
    saw_marker = FindMarker(graph, "backward") != nullptr;
    for (const auto& node : graph.nodes()) saw_gradient |= IsOp(*node, "tanh_grad");
    return false;
  });
  ASSERT_TRUE(Run({{Stage::kForward, look}}).ok());
  EXPECT_TRUE(saw_marker);
  EXPECT_FALSE(saw_gradient);
  ASSERT_TRUE(Run({{Stage::kStep, look}}).ok());
  EXPECT_FALSE(saw_marker);
  EXPECT_TRUE(saw_gradient);
}

TEST_F(OwnPassTest, WhatTheyLeaveIsTidiedUpAndDifferentiated) {
  ASSERT_TRUE(Run({{Stage::kForward, TanhToSigmoid()}}).ok());
  EXPECT_EQ(Count("tanh"), 0);
  EXPECT_EQ(Count("tanh_grad"), 0);
  EXPECT_EQ(Count("sigmoid"), 1);
  EXPECT_EQ(Count("sigmoid_grad"), 1);
}

TEST_F(OwnPassTest, AWrongAnswerIsFoundWithoutBeingAskedFor) {
  const auto secret = MakeOwn("secret", [](ir::Graph& graph, PassContext& context) {
    static_cast<void>(TanhToSigmoid()->Run(graph, context));
    return false;
  });
  const absl::Status status = Run({{Stage::kForward, secret}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Message(status), "pass secret: answered that it left the graph alone, but changed it");
}

TEST_F(OwnPassTest, ABrokenGraphNamesThePass) {
  const auto breaks = MakeOwn("breaks", [](ir::Graph& graph, PassContext&) {
    for (const auto& node : graph.nodes()) {
      if (IsOp(*node, "tanh")) node->mutable_output_types()[0].dtype = DType::kF16;
    }
    return true;
  });
  const absl::Status status = Run({{Stage::kForward, breaks}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Message(status), HasSubstr("pass breaks: "));
}

TEST_F(OwnPassTest, AnErrorNamesThePass) {
  const auto fails = MakeOwn("fails", [](ir::Graph&, PassContext&) -> absl::StatusOr<bool> {
    return Unimplemented("not on a Sunday");
  });
  const absl::Status status = Run({{Stage::kStep, fails}});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Message(status), "pass fails: not on a Sunday");
}

TEST_F(OwnPassTest, NamesThatDoNotFitAreRefused) {
  const auto refusal = [this](std::shared_ptr<Pass> pass) {
    const absl::Status status = Run({{Stage::kForward, std::move(pass)}});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return Message(status);
  };
  EXPECT_EQ(refusal(nullptr), "add_pass: got no pass");
  EXPECT_EQ(refusal(IdleOwn("")), "add_pass: pass \"\"; expected a name of a-z, 0-9, - and _");
  EXPECT_EQ(refusal(IdleOwn("../x")),
            "add_pass: pass \"../x\"; expected a name of a-z, 0-9, - and _");
  EXPECT_EQ(refusal(IdleOwn("simplify")),
            "add_pass: pass \"simplify\"; the pipeline has one of that name");
}

}  // namespace
}  // namespace halftone::passes
