// Compile time grows with the number of nodes: four times the nodes take about four times as long,
// where a pass that looks at all nodes for each of them takes sixteen. Processor time of this
// process, so that a busy machine does not matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>

#include "halftone/graph/ir/text.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/pipeline.h"

namespace halftone::passes {
namespace {

std::string Numbered(const char* name, int i) { return name + std::to_string(i); }

// `statements(text)` writes a forward pass and gives its loss; trained in f16 with Adam.
std::string Training(const std::vector<std::string>& parameters,
                     const std::function<std::string(std::string&)>& statements, int rows = 4) {
  std::string text = "graph @g(%x: f32[" + std::to_string(rows) + ",8]) {\n";
  std::string names;
  for (const std::string& name : parameters) {
    text += "%" + name + " = variable \"" + name + "\" {init=\"uniform(-0.5,0.5)\"} : f32[8,8]\n";
    names += (names.empty() ? "\"" : ", \"") + name + "\"";
  }
  const std::string loss = statements(text);
  return text + "backward(" + loss +
         ") {scaler=\"scaler0\"}\namp() {dtype=f16}\nscaler()\n"
         "%n, %a = optimizer() {params=[" +
         names + "], rule=\"adam\", scaler=\"scaler0\"}\nreturn " + loss + "\n}";
}

std::string MatmulChain(int n) {
  std::vector<std::string> parameters;
  for (int i = 0; i < n; ++i) parameters.push_back(Numbered("w", i));
  return Training(parameters, [&](std::string& text) {
    std::string h = "%x";
    for (int i = 0; i < n; ++i) {
      text += Numbered("%m", i) + " = matmul(" + h + ", " + Numbered("%w", i) + ")\n";
      h = Numbered("%t", i);
      text += h + " = tanh(" + Numbered("%m", i) + ")\n";
    }
    text += "%loss = mean(" + h + ") {axes=[0, 1]}\n";
    return "%loss";
  });
}

// Ops whose dtype does not matter follow the product one by one.
std::string ClearChain(int n) {
  return Training({"w"}, [&](std::string& text) {
    text += "%m = matmul(%x, %w)\n";
    std::string h = "%m";
    for (int i = 0; i < 2 * n; ++i) {
      text += Numbered("%r", i) + " = relu(" + h + ")\n";
      h = Numbered("%t", i);
      text += h + " = transpose(" + Numbered("%r", i) + ") {perm=[1, 0]}\n";
    }
    text += "%loss = mean(" + h + ") {axes=[0, 1]}\n";
    return "%loss";
  });
}

// A denied op at the beginning denies all that follow it.
std::string DeniedChain(int n) {
  return Training({"w"}, [&](std::string& text) {
    text += "%m = matmul(%x, %w)\n%e = exp(%m)\n";
    std::string h = "%e";
    for (int i = 0; i < 4 * n; ++i) {
      text += Numbered("%s", i) + " = add(" + h + ", %m)\n";
      h = Numbered("%s", i);
    }
    text += "%loss = mean(" + h + ") {axes=[0, 1]}\n";
    return "%loss";
  });
}

// Everything that is there twice is merged, and an optimizer reads what is left.
std::string EqualBranches(int n) {
  return Training({"w"}, [&](std::string& text) {
    text += "%m = matmul(%x, %w)\n%h = sigmoid(%m)\n";
    std::string h = "%h";
    for (int i = 0; i < 2 * n; ++i) {
      text += Numbered("%a", i) + " = tanh(%m)\n";
      text += Numbered("%b", i) + " = mul(" + h + ", " + Numbered("%a", i) + ")\n";
      h = Numbered("%b", i);
    }
    text += "%loss = mean(" + h + ") {axes=[0, 1]}\n";
    return "%loss";
  });
}

// Two values a layer wait for the backward pass; they are to take a quarter of that.
std::string TanhChainOnABudget(int n) {
  std::string text = Training({"w"}, [&](std::string& statements) {
    statements += "%m = matmul(%x, %w)\n";
    std::string h = "%m";
    for (int i = 0; i < 2 * n; ++i) {
      statements += Numbered("%t", i) + " = tanh(" + h + ")\n";
      h = Numbered("%t", i);
    }
    statements += "%loss = mean(" + h + ") {axes=[0, 1]}\n";
    return "%loss";
  });
  return text.insert(text.rfind("return"),
                     "memory_budget() {bytes=" + std::to_string(64 * n) + "}\n");
}

// MiB that wait for the backward pass, every one of which is cheap to make anew.
std::string LargeTanhChain(int n) {
  constexpr int kRows = 1 << 15;
  return Training(
      {"w"},
      [&](std::string& text) {
        text += "%m = matmul(%x, %w)\n";
        std::string h = "%m";
        for (int i = 0; i < 2 * n; ++i) {
          text += Numbered("%t", i) + " = tanh(" + h + ")\n";
          h = Numbered("%t", i);
        }
        text += "%loss = mean(" + h + ") {axes=[0, 1]}\n";
        return "%loss";
      },
      kRows);
}

// Convolutions one behind the other, the first of which n ops read.
std::string Images(int n) {
  std::string text =
      "graph @g(%x: f32[1,32,8,8]) {\n  %w = variable \"w\" : f32[32,32,3,3]\n"
      "  %c = conv2d(%x, %w) {padding=[1, 1]}\n  %h = relu(%c)\n";
  std::string h = "%h";
  for (int i = 0; i < n; ++i) {
    text += Numbered("  %a", i) + " = add(" + h + ", %c)\n" + Numbered("  %c", i) + " = conv2d(" +
            Numbered("%a", i) + ", %w) {padding=[1, 1]}\n";
    h = Numbered("%c", i);
  }
  return text + "  return " + h + "\n}\n";
}

double Seconds(const std::string& text) {
  auto graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return 0;
  const kernels::ReferenceEvaluator evaluator;
  PassContext context;
  context.target = *kernels::FindFixedTarget("cpu-avx512bf16");
  context.evaluator = &evaluator;
  const std::clock_t start = std::clock();
  const absl::Status status = RunPipeline(**graph, context);
  const MemoryPlan plan = PlanMemory(**graph);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_TRUE(status.ok()) << status;
  return seconds;
}

struct Family {
  const char* name;
  std::string (*text)(int n);
};

class CompileTime : public ::testing::TestWithParam<Family> {};

TEST_P(CompileTime, F61GrowsWithTheNumberOfNodes) {
  constexpr int kSmall = 150;
  double best = 1e9;
  for (int attempt = 0; attempt < 4 && best > 8; ++attempt) {
    const double small = Seconds(GetParam().text(kSmall));
    best = std::min(best, Seconds(GetParam().text(4 * kSmall)) / small);
  }
  EXPECT_LT(best, 8) << "times as long for four times the nodes";
}

INSTANTIATE_TEST_SUITE_P(Families, CompileTime,
                         ::testing::Values(Family{"MatmulChain", MatmulChain},
                                           Family{"TanhChainOnABudget", TanhChainOnABudget},
                                           Family{"LargeTanhChain", LargeTanhChain},
                                           Family{"ClearChain", ClearChain},
                                           Family{"DeniedChain", DeniedChain},
                                           Family{"EqualBranches", EqualBranches},
                                           Family{"Images", Images}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace halftone::passes
