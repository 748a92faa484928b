// The first non-finite node of random training steps in which one overflow was planted, in the
// forward graph or in the backward one.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/graph/runtime/find_nonfinite.h"
#include "halftone/graph/runtime/replay.h"
#include "halftone/passes/amp/policy.h"
#include "halftone/tests/support/graph_runner.h"
#include "halftone/tests/support/random_graph.h"

namespace halftone::testing {
namespace {

using ir::Expr;
using runtime::NonFiniteNode;
using runtime::SeenRanges;

constexpr char kScale[] = "s.scale";

// A random graph with three nodes in the middle of it, which together do nothing: v * boost / boost
// ("planted", "undone"), or v / boost * boost ("shrunk", "planted"). The loss is the mean of all
// outputs and of what these nodes give.
struct PlantedStep {
  std::unique_ptr<ir::Graph> graph;
  GraphFeeds feeds;
};

// Values that are floats and computed, of which the planted nodes may take one.
std::vector<ir::Node*> Candidates(const ir::Graph& graph) {
  std::vector<ir::Node*> found;
  for (const auto& node : graph.nodes()) {
    if (node->num_inputs() > 0 && node->num_outputs() == 1 &&
        node->output_type().dtype == DType::kF32) {
      found.push_back(node.get());
    }
  }
  return found;
}

PlantedStep Plant(uint64_t seed, bool in_backward, bool low) {
  PlantedStep step;
  step.graph = RandomGraph(seed, {.steps = 16, .casts = false});
  ir::Graph& graph = *step.graph;
  graph.Remove(graph.commits());
  const std::vector<ir::Node*> candidates = Candidates(graph);
  ir::Builder b(&graph);
  if (candidates.empty()) return {};
  const ir::Value v = candidates[seed % candidates.size()]->output();
  const auto scalar_input = [&b](const char* name) { return b.Input(name, {DType::kF32, {}}); };
  const Expr gain = scalar_input("gain"), boost = scalar_input("boost");
  const ir::Variable parameter{.name = "p", .type = v.type(), .init = {.a = 0.125}};
  const Expr shifted = b.Op("add", {b.Wrap(v), b.Var(parameter)});
  const Expr raised = b.Op("mul", {shifted, gain});
  b.NameNext(in_backward ? "shrunk" : "planted");
  const Expr first = b.Op(in_backward ? "div" : "mul", {raised, boost});
  b.NameNext(in_backward ? "planted" : "undone");
  const Expr second = b.Op(in_backward ? "mul" : "div", {first, boost});
  const Expr back = b.Op("div", {second, gain});
  graph.ReplaceUses(v, back.value(), shifted.value().node);
  Expr loss = b.Op("mean", {back}, {{"axes", std::vector<int64_t>{}}});
  for (const ir::Output& output : std::vector<ir::Output>(graph.outputs())) {
    if (output.value.dtype() != DType::kF32) continue;
    loss = loss + b.Op("mean", {b.Wrap(output.value)}, {{"axes", std::vector<int64_t>{}}});
  }
  graph.outputs() = {{"loss", loss.value()}};
  b.Root("backward", {loss}, {{"scaler", std::string("s")}});
  const std::vector<std::string> names = {"p"};
  b.Make("optimizer", {},
         {{"name", std::string("optimizer0")},
          {"rule", std::string("sgd")},
          {"params", names},
          {"grad_params", std::vector<std::string>{}},
          {"scaler", std::string("s")}});
  b.Root("scaler", {}, {{"name", std::string("s")}, {"init_scale", 1.0}});
  if (low) {
    amp::Policy policy;
    policy.dtype = DType::kF16;
    policy.allow = {"*planted", "*shrunk"};
    b.Root("amp", {}, policy.ToMarker());
  }
  EXPECT_TRUE(b.status().ok()) << b.status();
  EXPECT_TRUE(graph.Sort().ok());
  step.feeds = RandomFeeds(graph, {.lo = -1, .hi = 1}, seed);
  return step;
}

// A step made ready: lowered, with its state.
struct Ready {
  std::unique_ptr<ir::Graph> lowered;
  runtime::VariableStore store;
};

void Lower(const PlantedStep& step, Ready& ready) {
  ready.lowered = step.graph->Clone();
  const auto target = runtime::TargetOf(Device());
  ASSERT_TRUE(target.ok());
  const absl::Status status = runtime::Lower(*ready.lowered, **target);
  ASSERT_TRUE(status.ok()) << status << step.graph->ToString();
}

SeenRanges See(Ready& ready, const PlantedStep& step, double gain, double boost, double scale) {
  std::map<std::string, Tensor> inputs = step.feeds.inputs;
  inputs["gain"] = Tensor::Scalar(DType::kF32, gain);
  inputs["boost"] = Tensor::Scalar(DType::kF32, boost);
  std::vector<const void*> data;
  for (const ir::Node* node : ready.lowered->inputs()) {
    data.push_back(inputs.at(node->attrs().GetString("name")).raw());
  }
  runtime::ReplayOptions options;
  options.scalars[kScale] = scale;
  const auto ranges = runtime::Replay(*ready.lowered, options, ready.store, data);
  EXPECT_TRUE(ranges.ok()) << ranges.status();
  return ranges.ok() ? *ranges : SeenRanges();
}

double Largest(const Ready& ready, const SeenRanges& ranges, const std::string& name) {
  const ir::Node* node = ready.lowered->FindNode(name);
  return node == nullptr ? 0 : ranges.at({node->id(), 0}).largest;
}

// The largest gradient, and that of the operand of the planted node.
std::pair<double, double> Gradients(const Ready& ready, const SeenRanges& ranges) {
  double all = 0, planted = 0;
  for (const auto& node : ready.lowered->nodes()) {
    if (node->provenance.pass != "autodiff") continue;
    for (int i = 0; i < node->num_outputs(); ++i) {
      const auto range = ranges.find({node->id(), i});
      if (range == ranges.end()) continue;
      all = std::max(all, range->second.largest);
      if (node->provenance.from == "planted") planted = std::max(planted, range->second.largest);
    }
  }
  return {all, planted};
}

double PowerOfTwoBelow(double x) { return std::ldexp(1, std::ilogb(x)); }

constexpr int kWanted = 100;

TEST(FirstNonFinite, NamesTheForwardNodePlantedInRandomSteps) {
  int planted = 0, named = 0;
  for (uint64_t seed = 0; planted < kWanted; ++seed) {
    ASSERT_LT(seed, 2 * kWanted) << "too few graphs have a place for it";
    SCOPED_TRACE(seed);
    const PlantedStep wide = Plant(seed, false, false), low = Plant(seed, false, true);
    if (wide.graph == nullptr) continue;
    Ready in_f32, in_f16;
    Lower(wide, in_f32);
    const double largest = Largest(in_f32, See(in_f32, wide, 1, 1, 1), "planted");
    if (!(largest > 1e-3)) continue;
    ++planted;
    // `raised` is within 512 and 1024, `planted` within 2^17 and 2^18.
    const double gain = 512 / PowerOfTwoBelow(largest);
    Lower(low, in_f16);
    ASSERT_EQ(in_f16.lowered->FindNode("planted")->output_type().dtype, DType::kF16);
    EXPECT_FALSE(runtime::FindNonFinite(*in_f16.lowered, See(in_f16, low, gain, 1, 1)).has_value());
    const auto found = runtime::FindNonFinite(*in_f16.lowered, See(in_f16, low, gain, 256, 1));
    ASSERT_TRUE(found.has_value());
    named += found->node == "planted";
    EXPECT_EQ(found->node, "planted") << runtime::ToString(*found) << in_f16.lowered->ToString();
    EXPECT_EQ(found->kind, NonFiniteNode::Kind::kComputed);
    EXPECT_EQ(found->dtype, DType::kF16);
    EXPECT_GT(found->range.non_finite, 0);
    EXPECT_TRUE(found->operands.at(0).range.is_finite());
    EXPECT_NE(found->why, "");
  }
  EXPECT_EQ(named, kWanted);
}

TEST(FirstNonFinite, NamesTheGradientPlantedInRandomSteps) {
  int planted = 0, named = 0;
  for (uint64_t seed = 0; planted < kWanted; ++seed) {
    ASSERT_LT(seed, 3 * kWanted) << "too few graphs have a place for it";
    SCOPED_TRACE(seed);
    const PlantedStep wide = Plant(seed, true, false), low = Plant(seed, true, true);
    if (wide.graph == nullptr) continue;
    Ready in_f32, in_f16;
    Lower(wide, in_f32);
    const auto [all, own] = Gradients(in_f32, See(in_f32, wide, 1, 1, 1));
    if (!(own > all / 64)) continue;
    ++planted;
    // At this scale all gradients are below 2^14 but the planted one, which is above 2^17.
    const double scale = PowerOfTwoBelow(0x1p13 / all);
    const double boost = 2 * PowerOfTwoBelow(0x1p17 / (own * scale));
    Lower(low, in_f16);
    EXPECT_FALSE(
        runtime::FindNonFinite(*in_f16.lowered, See(in_f16, low, 1, 1, scale)).has_value());
    const auto found = runtime::FindNonFinite(*in_f16.lowered, See(in_f16, low, 1, boost, scale));
    ASSERT_TRUE(found.has_value());
    named += found->gradient_of == "planted";
    EXPECT_EQ(found->gradient_of, "planted")
        << runtime::ToString(*found) << in_f16.lowered->ToString();
    EXPECT_EQ(found->op, "mul");
    EXPECT_EQ(found->dtype, DType::kF16);
  }
  EXPECT_EQ(named, kWanted);
}

}  // namespace
}  // namespace halftone::testing
