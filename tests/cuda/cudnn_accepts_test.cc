// The graphs that kernels build, planned by cuDNN for an H100 that is not there: each family of them
// must get plans. Engines that the library compiles at run time (attention, biases and weight gradients in
// f32 beside 16-bit operands) need NVRTC, and load their code through the driver: tests of those are
// skipped where one is missing. In ctest separate/stub_driver.cc is the driver.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "halftone/kernels/cuda/cudnn/knob_search.h"
#include "halftone/kernels/cuda/ops/cudnn_nodes.h"
#include "halftone/tests/cuda/cudnn_graphs.h"
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

using cuda::ConvProduct;
using cuda::CudnnConv;
using cuda::CudnnPlan;
using kernels::CudnnConvWay;

constexpr size_t kEnoughPlans = 3;

cuda::CudnnTarget PlannedFor() { return {nullptr, &TestDevice()}; }

// Why engines cannot be compiled at run time, or nothing.
std::string WhyNoCompiler() {
#if !defined(HALFTONE_CUDA_EMULATED)
  for (const std::string& library :
       {std::string("libcuda.so.1"), Concat("libnvrtc.so.", CUDART_VERSION / 1000)}) {
    if (dlopen(library.c_str(), RTLD_NOW) == nullptr) return Concat("no ", library);
  }
#endif
  return "";
}

#define SKIP_WITHOUT_COMPILER() \
  if (const std::string why = WhyNoCompiler(); !why.empty()) GTEST_SKIP() << why

// Says how many there are, for the log.
void ExpectPlans(const std::string& what, const absl::StatusOr<std::vector<CudnnPlan>>& plans) {
  ASSERT_TRUE(plans.ok()) << what << ": " << Message(plans.status());
  EXPECT_GT(plans->size(), 0U) << what;
  std::string engines;
  for (const CudnnPlan& plan : *plans) engines += Concat(" ", plan.choice.engine);
  std::printf("%zu plans, engines%s: %s\n", plans->size(), engines.c_str(), what.c_str());
}

struct Convolution {
  const char* what;
  Shape x, w, y;
  int64_t stride, padding;
};
// Of ResNet-50 at 32 images, and of fashion_cnn.
const std::vector<Convolution>& Convolutions() {
  static const auto* const all = new std::vector<Convolution>{
      {"3x3", {32, 64, 56, 56}, {64, 64, 3, 3}, {32, 64, 56, 56}, 1, 1},
      {"1x1", {32, 256, 14, 14}, {1024, 256, 1, 1}, {32, 1024, 14, 14}, 1, 0},
      {"strided", {32, 128, 56, 56}, {128, 128, 3, 3}, {32, 128, 28, 28}, 2, 1},
  };
  return *all;
}

// What the kernel of `op` asks the library for.
CudnnConv AskedFor(const Convolution& c, ConvProduct product, DType dtype, ir::Attributes more = {},
                   bool has_bias = false) {
  ir::Attributes attrs = std::move(more);
  attrs.Set("stride", Ints{c.stride, c.stride});
  attrs.Set("padding", Ints{c.padding, c.padding});
  const auto ints = [](const Shape& s) { return Ints(s.dims().begin(), s.dims().end()); };
  std::vector<OpInput> inputs = {Reals(c.x), Reals(c.w)};
  std::string op = "conv2d";
  if (product == ConvProduct::kGradInput) {
    op = "conv2d_grad_input";
    inputs = {Reals(c.y), Reals(c.w)};
    attrs.Set("shape", ints(c.x));
  } else if (product == ConvProduct::kGradWeight) {
    op = "conv2d_grad_weight";
    inputs = {Reals(c.x), Reals(c.y)};
    attrs.Set("shape", ints(c.w));
  } else if (has_bias) {
    inputs.push_back(Reals({c.w[0]}));
  }
  const OpCase asked = Case(op, c.what, inputs, attrs);
  const auto graph = BuildCaseGraph(asked, dtype, ir::Layout::kChannelsLast);
  return kernels::CudnnConvOf(*CaseNode(*graph), product).conv;
}

TEST(CudnnAcceptsTest, Convolutions) {
  for (const Convolution& c : Convolutions()) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const auto& [suffix, product] : cuda::kConvProducts) {
        ExpectPlans(Concat("conv2d", suffix, " ", c.what, " in ", Name(dtype)),
                    kernels::CudnnConvPlans(AskedFor(c, product, dtype), CudnnConvWay::kDirect,
                                            PlannedFor(), kEnoughPlans));
      }
    }
  }
}

TEST(CudnnAcceptsTest, ConvolutionsWithBias) {
  for (const Convolution& c : Convolutions()) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      ExpectPlans(
          Concat("conv2d and bias, ", c.what, " in ", Name(dtype)),
          kernels::CudnnConvPlans(AskedFor(c, ConvProduct::kForward, dtype, {}, /*has_bias=*/true),
                                  CudnnConvWay::kDirect, PlannedFor(), kEnoughPlans));
    }
  }
}

// The weight gradient in f32 of operands widened for it, which needs no driver.
TEST(CudnnAcceptsTest, WidenedWeightGradients) {
  const ir::Attributes wide = {{"out", std::string("f32")}};
  for (const Convolution& c : Convolutions()) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      ExpectPlans(Concat("f32 weight gradient, widened, ", c.what, " of ", Name(dtype)),
                  kernels::CudnnConvPlans(AskedFor(c, ConvProduct::kGradWeight, dtype, wide),
                                          CudnnConvWay::kWidened, PlannedFor(), kEnoughPlans));
    }
  }
}

TEST(CudnnAcceptsTest, DirectWeightGradientsInF32) {
  SKIP_WITHOUT_COMPILER();
  const ir::Attributes wide = {{"out", std::string("f32")}};
  const Convolution& c = Convolutions()[0];  // compiling takes seconds
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    ExpectPlans(Concat("f32 weight gradient, ", c.what, " of ", Name(dtype)),
                kernels::CudnnConvPlans(AskedFor(c, ConvProduct::kGradWeight, dtype, wide),
                                        CudnnConvWay::kDirect, PlannedFor(), 1));
  }
}

// The engine that makes them has settings that the library does not try by itself: parts of sums, and kernels. Another
// than the default is accepted, and what the cache would keep of it makes it again.
TEST(CudnnAcceptsTest, SettingsOfDirectWeightGradients) {
  SKIP_WITHOUT_COMPILER();
  const ir::Attributes wide = {{"out", std::string("f32")}};
  const CudnnConv conv = AskedFor(Convolutions()[0], ConvProduct::kGradWeight, DType::kF16, wide);
  const auto found = kernels::CudnnConvPlans(conv, CudnnConvWay::kDirect, PlannedFor(), 1);
  ASSERT_TRUE(found.ok()) << Message(found.status());
  const CudnnPlan& start = (*found)[0];
  const auto knobs = cuda::CudnnKnobs(start);
  ASSERT_TRUE(knobs.ok()) << Message(knobs.status());
  ASSERT_FALSE(knobs->empty());
  for (const cuda::CudnnKnob& knob : *knobs) {
    std::printf("engine %s, knob %d: %s to %s by %s\n", Concat(start.choice.engine).c_str(),
                static_cast<int>(knob.type), Concat(knob.minimum).c_str(),
                Concat(knob.maximum).c_str(), Concat(knob.stride).c_str());
  }
  cuda::CudnnKnobSearch search(start, PlannedFor(), /*budget=*/1, /*seconds=*/60);  // to compile
  const std::vector<CudnnPlan> others = search.Next(start.choice);
  ASSERT_EQ(others.size(), 1U);
  EXPECT_NE(others[0].choice, start.choice);
  EXPECT_GT(others[0].workspace_bytes, start.workspace_bytes) << "parts are added up there";
  const auto again = cuda::RebuildCudnnPlan(start.graph, PlannedFor(), others[0].choice);
  ASSERT_TRUE(again.ok()) << Message(again.status());
  EXPECT_EQ(again->choice, others[0].choice);
  EXPECT_EQ(again->workspace_bytes, others[0].workspace_bytes);
  EXPECT_TRUE(search.Next(start.choice).empty()) << "more than its budget";
}

// No kernel asks for it (round-biases has the bias rounded): what the library could do.
TEST(CudnnAcceptsTest, ConvolutionsWithF32Bias) {
  SKIP_WITHOUT_COMPILER();
  const Convolution& c = Convolutions()[0];  // compiling takes seconds
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    CudnnConv conv = AskedFor(c, ConvProduct::kForward, dtype, {}, /*has_bias=*/true);
    conv.bias_dtype = CUDNN_DATA_FLOAT;
    ExpectPlans(Concat("conv2d and f32 bias, ", c.what, " in ", Name(dtype)),
                kernels::CudnnConvPlans(conv, CudnnConvWay::kDirect, PlannedFor(), 1));
  }
}

// [batch, heads, positions, columns], or read from a packed projection [batch, positions, 3, heads, columns].
OpCase AttentionOf(bool gradient, bool packed, bool causal, const Shape& size) {
  const int64_t batch = size[0], heads = size[1], length = size[2], columns = size[3];
  ir::Attributes attrs = {{"scale", 0.125}, {"is_causal", causal}};
  Shape operand = size, result = size;
  if (packed) {
    const int64_t row = 3 * heads * columns;
    operand = {batch, length, 3, heads, columns};
    result = {batch, length, heads, columns};
    int64_t third = 0;
    for (const char* view : {"query_view", "key_view", "value_view"}) {
      attrs.Set(view, Ints{batch, heads, length, columns, length * row, columns, row, 1,
                           third++ * heads * columns});
    }
    attrs.Set("heads_last", true);
  }
  std::vector<OpInput> inputs(3, Reals(operand));
  if (gradient) {
    inputs.push_back(Reals(result));
    inputs.push_back(Pinned(Reals({2, batch, heads, length})));
    inputs.push_back(Reals(result));
  }
  return Case(gradient ? "scaled_dot_product_attention_grad" : "scaled_dot_product_attention",
              "asked", inputs, attrs);
}

TEST(CudnnAcceptsTest, Attention) {
  SKIP_WITHOUT_COMPILER();
  for (const bool gradient : {false, true}) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      for (const bool packed : {false, true}) {
        for (const bool causal : {false, true}) {
          const OpCase c = AttentionOf(gradient, packed, causal, {8, 12, 1024, 64});
          const auto graph = BuildCaseGraph(c, dtype);
          const auto attention = kernels::CudnnAttentionOf(*CaseNode(*graph), gradient);
          ExpectPlans(
              Concat(c.op, packed ? ", packed" : "", causal ? ", causal" : "", " in ", Name(dtype)),
              kernels::CudnnAttentionPlans(attention, PlannedFor(), 1));
        }
      }
    }
  }
}

// Not because the stub driver takes everything: the library refuses by itself.
TEST(CudnnAcceptsTest, RefusesColumnsOfNoWholePacks) {
  SKIP_WITHOUT_COMPILER();
  const OpCase c =
      AttentionOf(/*gradient=*/false, /*packed=*/false, /*causal=*/false, {8, 12, 1024, 60});
  const auto graph = BuildCaseGraph(c, DType::kF16);
  const auto attention = kernels::CudnnAttentionOf(*CaseNode(*graph), /*gradient=*/false);
  const auto plans = kernels::CudnnAttentionPlans(attention, PlannedFor(), 1);
  EXPECT_EQ(plans.status().code(), absl::StatusCode::kUnimplemented) << Message(plans.status());
  EXPECT_THAT(Message(plans.status()), ::testing::Not(::testing::HasSubstr("EXECUTION_FAILED")));
}

}  // namespace
}  // namespace halftone::testing
