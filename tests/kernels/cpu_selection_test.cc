// Which kernel the nodes of the workloads get: never the reference, never a reference
// implementation inside the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "halftone/core/cpu_features.h"
#include "halftone/tests/kernels/cpu_check.h"
#include "halftone/tests/support/run_kernel.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

ir::Attributes ConvAttrs() {
  return {{"stride", Ints{1, 1}},
          {"padding", Ints{1, 1}},
          {"dilation", Ints{1, 1}},
          {"groups", int64_t{1}}};
}
ir::Attributes ConvGradAttrs(const Ints& shape) {
  ir::Attributes attrs = ConvAttrs();
  attrs.Set("shape", shape);
  return attrs;
}

// mlp and fashion_cnn, batch 128, channels-last.
std::vector<OpCase> WorkloadNodes() {
  const OpInput wide_bias = Pinned(Reals({64}));
  std::vector<OpCase> nodes = {
      Case("linear", "mlp_1", {Reals({128, 256}), Reals({128, 256}), Pinned(Reals({128}))}),
      Case("linear", "mlp_2", {Reals({128, 128}), Reals({10, 128}), Pinned(Reals({10}))}),
      Case("linear", "cnn", {Reals({128, 12544}), Reals({128, 12544}), Pinned(Reals({128}))}),
      Case("matmul", "dx", {Reals({128, 10}), Reals({10, 128})}),
      Case("matmul", "dw", {Reals({128, 128}), Reals({128, 12544})},
           {{"transpose_a", true}, {"out", std::string("f32")}}),
      Case("sum", "db", {Reals({128, 128})}, {{"axes", Ints{0}}, {"out", std::string("f32")}}),
      Case("conv2d", "first", {Reals({128, 1, 28, 28}), Reals({32, 1, 3, 3}), Pinned(Reals({32}))},
           ConvAttrs()),
      Case("conv2d", "second", {Reals({128, 32, 28, 28}), Reals({64, 32, 3, 3}), wide_bias},
           ConvAttrs()),
      Case("conv2d_grad_weight", "first", {Reals({128, 1, 28, 28}), Reals({128, 32, 28, 28})},
           ConvGradAttrs({32, 1, 3, 3})),
      Case("conv2d_grad_weight", "second", {Reals({128, 32, 28, 28}), Reals({128, 64, 28, 28})},
           ConvGradAttrs({64, 32, 3, 3})),
      Case("conv2d_grad_input", "second", {Reals({128, 64, 28, 28}), Reals({64, 32, 3, 3})},
           ConvGradAttrs({128, 32, 28, 28})),
      Case("conv2d_grad_bias", "second", {Reals({128, 64, 28, 28})}),
      Case("relu", "cnn", {Reals({128, 64, 28, 28})}),
      Case("relu_grad", "cnn", {Reals({128, 64, 28, 28}), Reals({128, 64, 28, 28})}),
      Case("max_pool2d", "cnn", {Reals({128, 64, 28, 28})},
           {{"kernel", Ints{2, 2}}, {"stride", Ints{2, 2}}}),
      Case("cross_entropy", "loss", {Reals({128, 10}), Whole(DType::kI64, {128}, 0, 9)}),
      Case("cross_entropy_grad", "loss",
           {Reals({128, 10}), Whole(DType::kI64, {128}, 0, 9), Pinned(Reals({2, 128})),
            Pinned(Reals({}))}),
  };
  for (OpCase& c : nodes) c.channels_last = true;
  return nodes;
}

TEST(CpuSelection, WorkloadsRunOnFastKernels) {
  for (const OpCase& c : WorkloadNodes()) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const ir::Layout layout : LayoutsOf(c)) {
        if (layout == ir::Layout::kPlain) continue;  // that of no activation of theirs
        const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
        const auto kernel =
            kernels::KernelRegistry::Global().Select(*CaseNode(*graph), Device::Kind::kCpu);
        ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
        const std::string name = (*kernel)->name() + " " + (*kernel)->implementation();
        const std::string what = Concat(c.name, " in ", Name(dtype), ", ", ir::Name(layout));
        EXPECT_EQ(name.rfind("cpu:", 0), 0u) << what << ": " << name;
        EXPECT_EQ(name.find("ref"), std::string::npos) << what << ": " << name;
      }
    }
  }
}

// The library's plain order is up to seventeen times as slow as its own with reorders around it. Up
// to AVX2 it has nothing better than a matrix product for the gradient by the weights.
TEST(CpuSelection, VolumesLieInTheLibrarysOrder) {
  const bool limited = std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr ||
                       CpuFeatures::Detect().level() < SimdLevel::kAvx512;
  const Shape x{2, 32, 4, 8, 8}, w{64, 32, 3, 3, 3}, y{2, 64, 4, 8, 8};
  const auto with_shape = [](const Shape& shape) {
    return ir::Attributes{{"padding", Ints{1, 1, 1}},
                          {"shape", Ints(shape.dims().begin(), shape.dims().end())}};
  };
  for (const OpCase& c :
       {Case("conv3d", "volume", {Reals(x), Reals(w)}, {{"padding", Ints{1, 1, 1}}}),
        Case("conv3d_grad_input", "volume", {Reals(y), Reals(w)}, with_shape(x)),
        Case("conv3d_grad_weight", "volume", {Reals(x), Reals(y)}, with_shape(w)),
        Case("conv3d_grad_bias", "volume", {Reals(y)})}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
      const auto kernel =
          kernels::KernelRegistry::Global().Select(*CaseNode(*graph), Device::Kind::kCpu);
      ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
      const std::string name = (*kernel)->name() + " " + (*kernel)->implementation();
      EXPECT_EQ(name.rfind("cpu:", 0), 0u) << c.name << ": " << name;
      EXPECT_EQ(name.find("ref"), std::string::npos) << c.name << ": " << name;
      if (limited && c.op == "conv3d_grad_weight") continue;
      EXPECT_EQ(name.find("gemm"), std::string::npos) << c.name << ": " << name;
    }
  }
}

TEST(CpuSelection, WhatMayBeWidenedHasTheAttribute) {
  int widening = 0;
  for (const kernels::KernelCandidate* candidate : kernels::KernelRegistry::Global().All()) {
    if (!candidate->widens) continue;
    ++widening;
    const std::vector<ir::AttrSpec>& attrs = ir::OpRegistry::Global().Find(candidate->op)->attrs;
    EXPECT_TRUE(std::any_of(attrs.begin(), attrs.end(), [](const auto& attr) {
      return attr.name == "widened";
    })) << candidate->name;
  }
  EXPECT_GE(widening, 7);
}

// Whatever the processor is good at.
TEST(CpuSelection, WidensWhereTheGraphSaysSo) {
  const OpCase c = Case("matmul", "square", {Reals({64, 64}), Reals({64, 64})},
                        {{"widened", std::string("the test wants it")}});
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
    std::string log;
    const auto kernel =
        kernels::KernelRegistry::Global().Select(*CaseNode(*graph), Device::Kind::kCpu, &log);
    ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
    if (dtype == DType::kF32) {
      EXPECT_EQ((*kernel)->name(), "cpu:onednn:matmul");
      continue;
    }
    EXPECT_EQ((*kernel)->name(), "cpu:widened:matmul") << Name(dtype);
    EXPECT_THAT(log, ::testing::HasSubstr("cpu:onednn:matmul: the graph widens the operands\n"));
  }
}

// The library's f16, where it is taken, sums in f32: in f16, 2048 + 1 is 2048.
TEST(CpuSelection, F16ProductsAreSummedInF32) {
  constexpr int64_t kTerms = 8192;
  const OpCase c = Case("matmul", "ones", {Reals({16, kTerms}), Reals({kTerms, 16})},
                        {{"out", std::string("f32")}});
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF16);
  const ir::Node& node = *CaseNode(*graph);
  const std::vector<Tensor> ones = {Tensor::Full(DType::kF16, {16, kTerms}, 1),
                                    Tensor::Full(DType::kF16, {kTerms, 16}, 1)};
  int tried = 0;
  for (const char* name : {"cpu:onednn:matmul", "cpu:widened:matmul"}) {
    const auto kernel = kernels::KernelRegistry::Global().CreateNamed(node, name);
    if (!kernel.ok()) {
      EXPECT_EQ(Message(kernel.status()),
                "the library multiplies f16 no faster than f32, or not at all");
      continue;
    }
    ++tried;
    const auto y = RunKernel(**kernel, node, ones);
    ASSERT_TRUE(y.ok()) << Message(y.status());
    for (int64_t i = 0; i < 16 * 16; ++i) ASSERT_EQ((*y)[0].at(i), kTerms) << name;
  }
  EXPECT_GE(tried, 1);
}

TEST(CpuSelection, RefusalsHaveReasons) {
  const OpCase c = Case("matmul", "square", {Reals({4, 4}), Reals({4, 4})});
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF64);
  const auto kernel =
      kernels::KernelRegistry::Global().CreateNamed(*CaseNode(*graph), "cpu:onednn:matmul");
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Message(kernel.status()), "no f64; has f32 f16 bf16");
}

}  // namespace
}  // namespace halftone::testing
