// The decisions for the workloads on the kernels this build has: a kernel that goes missing would
// silently turn mixed precision off.
#include <gtest/gtest.h>

#include "halftone/kernels/cpu_target.h"
#include "halftone/passes/amp/insert_amp_casts.h"
#include "halftone/passes/amp/report.h"
#include "halftone/passes/amp/trim_amp_islands.h"
#include "halftone/tests/passes/amp_test_util.h"

namespace halftone::testing {
namespace {

constexpr char kFashionCnn[] = R"(
  %k1 = variable "k1" {} : f32[32,1,3,3]
  %b1 = variable "b1" {} : f32[32]
  %k2 = variable "k2" {} : f32[64,32,3,3]
  %b2 = variable "b2" {} : f32[64]
  %w1 = variable "w1" {} : f32[128,12544]
  %d1 = variable "d1" {} : f32[128]
  %w2 = variable "w2" {} : f32[10,128]
  %d2 = variable "d2" {} : f32[10]
  %c1 = conv2d(%x, %k1, %b1) {padding=[1,1]}
  %r1 = relu(%c1)
  %c2 = conv2d(%r1, %k2, %b2) {padding=[1,1]}
  %r2 = relu(%c2)
  %p, %i = max_pool2d(%r2) {kernel=[2,2], stride=[2,2]}
  %f = reshape(%p) {shape=[128,12544]}
  %h = linear(%f, %w1, %d1)
  %r3 = relu(%h)
  %logits = linear(%r3, %w2, %d2)
  %loss, %lse = cross_entropy(%logits, %y)
  backward(%loss)
  return %logits, %loss)";

TEST(AmpOnThisCpu, EveryNodeOfFashionCnnButTheLossIs16Bit) {
  for (const char* dtype : {"bf16", "f16"}) {
    const std::string text =
        Concat("graph @g(%x: f32[128,1,28,28], %y: i64[128]) {\n amp() {dtype=", dtype, "}\n",
               kFashionCnn, "\n}\n");
    auto graph = ParseGraph(text);
    const std::unique_ptr<ir::Target> target = kernels::MakeCpuTarget();
    passes::PassContext context;
    context.target = target.get();
    ASSERT_TRUE(passes::MakeInsertAmpCasts()->Run(*graph, context).ok());
    ASSERT_TRUE(passes::MakeTrimAmpIslands()->Run(*graph, context).ok());
    const passes::AmpReport report = passes::MakeAmpReport(*graph);
    EXPECT_EQ(report.f32_nodes, 1) << passes::ToText(report);
    EXPECT_EQ(report.low_nodes, 9);
    // %x, four weights and the logits; biases are read in f32.
    EXPECT_EQ(report.casts, 6) << passes::ToText(report);
  }
}

}  // namespace
}  // namespace halftone::testing
