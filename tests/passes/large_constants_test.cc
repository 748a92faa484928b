// A short text may ask for much: what it costs to compile is bounded.
#include <gtest/gtest.h>

#include "halftone/graph/ir/text.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/pass_manager.h"
#include "halftone/passes/rewrite/fold_constants.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

TEST(LargeConstants, F62FoldingReadsABoundedNumberOfBytes) {
  // 128 MiB, read three times where two are allowed.
  auto graph = ir::Parse(R"(graph @g() {
    %c = constant {value=splat<f32[33554432]>(1)} : f32[33554432]
    %a = max(%c) {axes=[0]}
    %b = sum(%c) {axes=[0]}
    %d = mean(%c) {axes=[0]}
    return %a, %b, %d
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const kernels::ReferenceEvaluator evaluator;
  PassContext context;
  context.target = *kernels::FindFixedTarget("cpu-avx512bf16");
  context.evaluator = &evaluator;
  PassManager manager;
  manager.Add(MakeFoldConstants());
  const absl::Status status = manager.Run(**graph, context);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(context.stats["folded"], 2);
  EXPECT_EQ(context.fold_read_bytes, kMaxFoldReadBytes);
  EXPECT_NE(ConstantValue((*graph)->outputs()[0].value), nullptr);
  EXPECT_EQ(ConstantValue((*graph)->outputs()[2].value), nullptr);
}

TEST(LargeConstants, SplatsAreToldByTheirFirstElement) {
  auto graph = ir::Parse(R"(graph @g() {
    %ones = constant {value=splat<f32[3]>(1)} : f32[3]
    %late = constant {value=dense<f32[3]>(1, 1, 2)} : f32[3]
    %nans = constant {value=splat<f32[3]>(nan)} : f32[3]
    %zeros = constant {value=splat<f32[3]>(-0)} : f32[3]
    %one = constant {value=dense<f32[]>(1)} : f32[]
    %none = constant {value=dense<f32[0]>()} : f32[0]
    return %ones, %late, %nans, %zeros, %one, %none
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto value = [&](const char* name) { return (*graph)->FindNode(name)->output(); };
  EXPECT_TRUE(IsSplat(value("ones"), 1));
  EXPECT_FALSE(IsSplat(value("ones"), 2));
  EXPECT_FALSE(IsSplat(value("late"), 1));
  EXPECT_FALSE(IsSplat(value("nans"), 1));
  EXPECT_TRUE(IsSplat(value("zeros"), -0.0));
  EXPECT_FALSE(IsSplat(value("zeros"), 0.0));
  EXPECT_TRUE(IsSplat(value("one"), 1));
  EXPECT_FALSE(IsSplat(value("none"), 1));
}

}  // namespace
}  // namespace halftone::passes
