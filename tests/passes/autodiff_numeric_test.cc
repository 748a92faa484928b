// Every golden graph of autodiff, in f64: its gradients agree with central differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "halftone/kernels/fixed_targets.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/autodiff/autodiff.h"
#include "halftone/tests/support/golden.h"

namespace halftone::testing {
namespace {

// One gradient to check: the sum of some graph outputs, differentiated by a feed, is another
// output.
struct Claim {
  std::vector<size_t> losses;
  const ir::Node* feed = nullptr;  // an input or a variable
  size_t gradient = 0;
};

Tensor& FeedOf(GraphFeeds& feeds, const ir::Node& node) {
  auto& map = node.op().name == "input" ? feeds.inputs : feeds.variables;
  return map.at(node.attrs().GetString("name"));
}

bool IsFeed(ir::Value v) {
  return (v.node->op().name == "input" || v.node->op().name == "variable") && IsFloat(v.dtype());
}

size_t AddOutput(ir::Graph& graph, ir::Value v) {
  graph.outputs().push_back({"", v});
  return graph.outputs().size() - 1;
}

std::vector<ir::Node*> NodesOf(const ir::Graph& graph, const std::string& op) {
  std::vector<ir::Node*> nodes;
  for (const auto& node : graph.nodes()) {
    if (node->op().name == op) nodes.push_back(node.get());
  }
  return nodes;
}

struct Loss {
  std::string scaler;
  std::vector<std::string> optimizers;  // that it reaches; none: all
  size_t output;
};

// Runs autodiff on the graph, whose outputs then hold losses and gradients.
void Differentiate(ir::Graph& graph, std::vector<Claim>& claims) {
  graph.outputs().clear();
  for (const ir::Node* marker : NodesOf(graph, "gradient")) {
    const size_t loss = AddOutput(graph, marker->input(0));
    for (int i = 0; i < marker->num_outputs(); ++i) {
      if (!IsFeed(marker->input(i + 1))) continue;
      claims.push_back({{loss}, marker->input(i + 1).node, AddOutput(graph, marker->output(i))});
    }
  }
  std::vector<Loss> losses;
  for (const ir::Node* marker : NodesOf(graph, "backward")) {
    losses.push_back({marker->attrs().GetString("scaler"),
                      marker->attrs().Get<std::vector<std::string>>("optimizers"),
                      AddOutput(graph, marker->input(0))});
  }
  passes::PassContext context;
  context.target = *kernels::FindFixedTarget("cpu-avx512bf16");
  const auto changed = passes::MakeAutodiff()->Run(graph, context);
  ASSERT_TRUE(changed.ok()) << changed.status();
  ASSERT_TRUE(graph.Sort().ok());
  for (const ir::Node* optimizer : NodesOf(graph, "optimizer")) {
    const auto& params = optimizer->attrs().Get<std::vector<std::string>>("grad_params");
    const auto& scalers = optimizer->attrs().Get<std::vector<std::string>>("grad_scalers");
    for (int i = 0; i < optimizer->num_inputs(); ++i) {
      const auto variables = graph.variable_nodes();
      const auto variable = std::find_if(
          variables.begin(), variables.end(),
          [&](const ir::Node* node) { return node->attrs().GetString("name") == params[i]; });
      ASSERT_NE(variable, variables.end()) << params[i];
      const std::string& scaler =
          scalers.empty() ? optimizer->attrs().GetString("scaler") : scalers[i];
      std::vector<size_t> of_this_scaler;
      for (const Loss& loss : losses) {
        const auto& reached = loss.optimizers;
        const std::string& name = optimizer->attrs().GetString("name");
        const bool reaches =
            reached.empty() || std::find(reached.begin(), reached.end(), name) != reached.end();
        if (reaches && loss.scaler == scaler) of_this_scaler.push_back(loss.output);
      }
      claims.push_back({of_this_scaler, *variable, AddOutput(graph, optimizer->input(i))});
    }
  }
}

double LossOf(const ir::Graph& graph, const GraphFeeds& feeds, const Claim& claim) {
  const kernels::ReferenceEvaluator evaluator;
  const auto results = RunGraph(graph, feeds, evaluator);
  EXPECT_TRUE(results.ok()) << results.status();
  double sum = 0;
  for (size_t i : claim.losses) sum += results->outputs[i].item();
  return sum;
}

void CheckClaim(const ir::Graph& graph, GraphFeeds feeds, const Claim& claim) {
  const kernels::ReferenceEvaluator evaluator;
  const auto results = RunGraph(graph, feeds, evaluator);
  ASSERT_TRUE(results.ok()) << results.status();
  const Tensor gradient = results->outputs[claim.gradient];
  Tensor& feed = FeedOf(feeds, *claim.feed);
  ASSERT_EQ(gradient.shape(), feed.shape());
  for (int64_t i = 0; i < feed.num_elements(); ++i) {
    const double x = feed.at(i);
    const double step = 1e-5 * std::max(1.0, std::abs(x));
    feed.set(i, x + step);
    const double above = LossOf(graph, feeds, claim);
    feed.set(i, x - step);
    const double below = LossOf(graph, feeds, claim);
    feed.set(i, x);
    const double expected = (above - below) / (2 * step);
    EXPECT_NEAR(gradient.at(i), expected, 1e-6 * std::max(1.0, std::abs(expected)))
        << claim.feed->name() << " element " << i;
  }
}

std::vector<std::string> AutodiffFiles() {
  std::vector<std::string> files;
  for (const std::string& path : GoldenFiles(HALFTONE_SOURCE_DIR)) {
    const auto golden = ReadGolden(path);
    if (golden.ok() && golden->pass == "autodiff" && golden->fires &&
        golden->expected_error.empty()) {
      files.push_back(path);
    }
  }
  return files;
}

TEST(AutodiffNumeric, GoldenGraphsAgreeWithCentralDifferences) {
  size_t checked = 0;
  for (const std::string& path : AutodiffFiles()) {
    SCOPED_TRACE(path);
    const auto golden = ReadGolden(path);
    // What is detached moves with its parameter here, and counts as a constant there.
    if (golden->input.find(" = detach(") != std::string::npos) continue;
    std::string text = std::regex_replace(golden->input, std::regex("\\b(bf16|f16|f32)\\b"), "f64");
    // The outputs of an optimizer are f32 whatever the gradients are.
    text = std::regex_replace(text, std::regex(" : f64\\[\\], bool\\[\\]"), "");
    auto graph = ir::Parse(text);
    ASSERT_TRUE(graph.ok()) << graph.status();
    std::vector<Claim> claims;
    Differentiate(**graph, claims);
    if (HasFatalFailure()) return;
    const auto range = FeedRangeOf(*golden);
    ASSERT_TRUE(range.ok()) << range.status();
    for (const Claim& claim : claims) {
      CheckClaim(**graph, RandomFeeds(**graph, *range, 11), claim);
      ++checked;
    }
  }
  EXPECT_GE(checked, 12u);
}

}  // namespace
}  // namespace halftone::testing
