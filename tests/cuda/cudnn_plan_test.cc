// Choosing engines: which are refused, and that every convolution finds one. Runs without a GPU, on
// the real library too: plans are for a device that it is told of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "halftone/graph/ops/support/window.h"
#include "halftone/kernels/cuda/cudnn/conv_run.h"
#include "halftone/kernels/cuda/cudnn/plan.h"
#include "halftone/tests/cuda/cudnn_graphs.h"
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

using cuda::ConvProduct;
using cuda::ConvRun;
using cuda::CudnnChoice;
using cuda::CudnnConv;
using cuda::CudnnConvGraph;
using cuda::CudnnPlan;
using cuda::CudnnTensor;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const cuda::CudnnTarget kTarget{nullptr, &TestDevice()};

// Of rank 4 channels-last, of rank 5 plain: as graphs lie.
CudnnTensor OperandOf(cudnnDataType_t dtype, const Shape& shape) {
  CudnnTensor t;
  t.dtype = dtype;
  const ir::Layout layout = shape.rank() == 4 ? ir::Layout::kChannelsLast : ir::Layout::kPlain;
  const auto strides = ir::StridesOf({DType::kF32, shape, layout});
  t.dims.assign(shape.dims().begin(), shape.dims().end());
  t.strides.assign(strides.begin(), strides.end());
  return t;
}

CudnnConv ConvOf(const ops::ConvGeometry& g, ConvProduct product, cudnnDataType_t dtype) {
  CudnnConv conv;
  conv.product = product;
  conv.x = OperandOf(dtype, g.x_shape());
  conv.w = OperandOf(dtype, g.w_shape());
  conv.y = OperandOf(dtype, g.y_shape());
  for (const ops::WindowAxis* axis : g.axes()) {
    conv.stride.push_back(axis->stride);
    conv.padding.push_back(axis->padding);
    conv.dilation.push_back(axis->dilation);
  }
  return conv;
}

// x [2,16,9,7], w [24,16,3,3].
CudnnConv SmallConv(ConvProduct product, cudnnDataType_t dtype) {
  const ir::Attributes attrs = {{"stride", ops::Ints{1, 1}},
                                {"padding", ops::Ints{1, 1}},
                                {"dilation", ops::Ints{1, 1}},
                                {"groups", int64_t{1}}};
  return ConvOf(ops::ConvGeometryOf(attrs, {2, 16, 9, 7}, {24, 16, 3, 3}), product, dtype);
}

absl::StatusOr<std::vector<CudnnPlan>> Find(const CudnnConv& conv, size_t limit = 100) {
  HT_ASSIGN_OR_RETURN(const auto graph, CudnnConvGraph::Make(conv, kTarget));
  return cuda::FindCudnnPlans(graph, kTarget, limit);
}

std::vector<cudnnBackendNumericalNote_t> NotesOf(const CudnnPlan& plan) {
  const auto engine = plan.config.GetDescriptor(CUDNN_ATTR_ENGINECFG_ENGINE,
                                                CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
  const auto notes = engine->Get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                              CUDNN_TYPE_NUMERICAL_NOTE);
  EXPECT_TRUE(notes.ok());
  return *notes;
}

constexpr ConvProduct kProducts[] = {ConvProduct::kForward, ConvProduct::kGradInput,
                                     ConvProduct::kGradWeight};
constexpr cudnnDataType_t kDTypes[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};

TEST(CudnnPlanTest, EnginesThatBreakAPromiseAreRefused) {
  for (const ConvProduct product : kProducts) {
    for (const cudnnDataType_t dtype : kDTypes) {
      const CudnnConv conv = SmallConv(product, dtype);
      const auto plans = Find(conv);
      ASSERT_TRUE(plans.ok()) << conv.ToString() << ": " << Message(plans.status());
      for (const CudnnPlan& plan : *plans) {
        EXPECT_LE(plan.workspace_bytes, cuda::kCudnnWorkspaceLimit);
        for (const cudnnBackendNumericalNote_t note : NotesOf(plan)) {
          EXPECT_NE(note, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) << conv.ToString();
          EXPECT_NE(note, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) << conv.ToString();
          EXPECT_NE(note, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) << conv.ToString();
          if (dtype == CUDNN_DATA_FLOAT) {
            EXPECT_NE(note, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) << conv.ToString();
          }
        }
      }
    }
  }
}

TEST(CudnnPlanTest, RefusalsOfEngines) {
  const auto refusal = [](cudnnBackendNumericalNote_t note, cudnnDataType_t dtype) {
    return Message(
        cuda::CheckNumericalNotes({note}, SmallConv(ConvProduct::kForward, dtype).promises()));
  };
  EXPECT_EQ(refusal(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_DATA_HALF), "not deterministic");
  EXPECT_EQ(refusal(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, CUDNN_DATA_FLOAT),
            "narrows its inputs");
  EXPECT_EQ(refusal(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, CUDNN_DATA_HALF),
            "sums in less than f32");
  EXPECT_EQ(refusal(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_DATA_FLOAT),
            "f32 on tensor cores is TF32");
  EXPECT_EQ(refusal(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_DATA_HALF), "");
  CudnnConv exact = SmallConv(ConvProduct::kGradWeight, CUDNN_DATA_FLOAT);
  CudnnConv allowed = exact;
  allowed.allow_tf32 = true;
  EXPECT_TRUE(
      cuda::CheckNumericalNotes({CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, allowed.promises()).ok());
  exact.tf32_is_exact = true;
  EXPECT_TRUE(cuda::CheckNumericalNotes({CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, exact.promises()).ok());
  EXPECT_EQ(Message(cuda::CheckNumericalNotes({CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS},
                                              exact.promises())),
            "narrows its inputs");
  for (const auto note : {CUDNN_NUMERICAL_NOTE_FFT, CUDNN_NUMERICAL_NOTE_WINOGRAD}) {
    EXPECT_EQ(refusal(note, CUDNN_DATA_BFLOAT16), "transforms in 16 bit");
    EXPECT_EQ(refusal(note, CUDNN_DATA_FLOAT), "");
  }
}

TEST(CudnnPlanTest, NoEngine) {
  CudnnConv conv = SmallConv(ConvProduct::kForward, CUDNN_DATA_HALF);
  conv.has_bias = true;  // f32, which engines add to channels-last operands alone
  for (CudnnTensor* t : {&conv.x, &conv.w, &conv.y}) {
    const auto& d = t->dims;
    t->strides = {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
  }
  const auto plans = Find(conv);
  ASSERT_EQ(plans.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Message(plans.status()), HasSubstr("cuDNN has no engine for these operands"));
  conv.bias_dtype = CUDNN_DATA_HALF;
  EXPECT_TRUE(Find(conv, 1).ok());
}

#if defined(HALFTONE_CUDA_EMULATED)
// Of the emulated engines one wants more than there may be.
TEST(CudnnPlanTest, WorkspaceLimit) {
  const auto graph =
      CudnnConvGraph::Make(SmallConv(ConvProduct::kForward, CUDNN_DATA_HALF), kTarget);
  EXPECT_EQ(Message(cuda::RebuildCudnnPlan(*graph, kTarget, {4, {}}).status()),
            "needs a workspace of 1073741824 bytes, limit 268435456");
}
#endif

TEST(CudnnPlanTest, NondeterministicEnginesOnRequest) {
  CudnnConv conv = SmallConv(ConvProduct::kGradWeight, CUDNN_DATA_FLOAT);
  const size_t before = Find(conv)->size();
  const std::string key = conv.ToString();
  conv.deterministic = false;
  EXPECT_GT(Find(conv)->size(), before);
  EXPECT_NE(conv.ToString(), key) << "one entry in the cache for both";
}

TEST(CudnnPlanTest, Tf32WhereItIsExact) {
  CudnnConv conv = SmallConv(ConvProduct::kGradWeight, CUDNN_DATA_FLOAT);
  const size_t without = Find(conv)->size();
  conv.tf32_is_exact = true;
  const auto with = Find(conv);
  ASSERT_TRUE(with.ok()) << Message(with.status());
  EXPECT_GT(with->size(), without);
  for (const CudnnPlan& plan : *with) {
    EXPECT_THAT(NotesOf(plan), Not(Contains(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)));
  }
}

// What the cache keeps of a plan makes the same plan again: several settings of one engine, told
// apart by their workspaces.
TEST(CudnnPlanTest, LimitAndRebuilding) {
  const ir::Attributes attrs = {{"stride", ops::Ints{1, 1}},
                                {"padding", ops::Ints{1, 1}},
                                {"dilation", ops::Ints{1, 1}},
                                {"groups", int64_t{1}}};
  const ops::ConvGeometry larger = ops::ConvGeometryOf(attrs, {64, 32, 28, 28}, {64, 32, 3, 3});
  for (const CudnnConv& conv : {SmallConv(ConvProduct::kForward, CUDNN_DATA_HALF),
                                ConvOf(larger, ConvProduct::kGradWeight, CUDNN_DATA_HALF)}) {
    const auto graph = CudnnConvGraph::Make(conv, kTarget);
    ASSERT_TRUE(graph.ok());
    ASSERT_EQ(cuda::FindCudnnPlans(*graph, kTarget, 1)->size(), 1U);
    const auto plans = Find(conv);
    ASSERT_TRUE(plans.ok());
    std::map<int64_t, std::set<int64_t>> workspaces_of;  // by engine
    std::map<int64_t, size_t> plans_of;
    for (const CudnnPlan& plan : *plans) {
      const auto parsed = CudnnChoice::Parse(plan.choice.ToString());
      ASSERT_TRUE(parsed.ok()) << plan.choice.ToString();
      EXPECT_EQ(*parsed, plan.choice);
      const auto again = cuda::RebuildCudnnPlan(*graph, kTarget, *parsed);
      ASSERT_TRUE(again.ok()) << Message(again.status());
      EXPECT_EQ(again->choice, plan.choice);
      EXPECT_EQ(again->workspace_bytes, plan.workspace_bytes) << plan.choice.ToString();
      workspaces_of[plan.choice.engine].insert(plan.workspace_bytes);
      EXPECT_LE(++plans_of[plan.choice.engine], cuda::kCudnnPlansOfAnEngine);
    }
    // Else rebuilding an engine's default settings would do. Forward engines need no workspaces.
    if (conv.product == ConvProduct::kGradWeight) {
      EXPECT_TRUE(std::any_of(workspaces_of.begin(), workspaces_of.end(), [](const auto& of) {
        return of.second.size() > 1;
      })) << conv.ToString();
    }
    EXPECT_FALSE(cuda::RebuildCudnnPlan(*graph, kTarget, {99999, {}}).ok());
    EXPECT_FALSE(
        cuda::RebuildCudnnPlan(*graph, kTarget, {0, {{CUDNN_KNOB_TYPE_TILE_SIZE, 99}}}).ok());
  }
}

TEST(CudnnPlanTest, ChoicesFromElsewhere) {
  EXPECT_EQ(*CudnnChoice::Parse("12 2=3 14=0"), (CudnnChoice{12, {{2, 3}, {14, 0}}}));
  for (const char* text : {"", "x", "-1", "12 ", "12 2", "12 2=", "12 2=3 ", "12  2=3", "12 99=1",
                           "12 -2=3", "99999999999999999999", "12 2=3x", " 12"}) {
    const auto choice = CudnnChoice::Parse(text);
    ASSERT_FALSE(choice.ok()) << text;
    EXPECT_EQ(choice.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(choice.status()),
              "no choice of a cuDNN engine; expected \"engine knob=value ...\"");
  }
  EXPECT_FALSE(CudnnChoice::Parse("1" + std::string(5000, ' ')).ok());
}

// Every case, in its three products and three types.
TEST(CudnnPlanTest, EveryConvolutionHasAnEngine) {
  std::vector<const OpCase*> cases = CasesOf("conv2d");
  for (const OpCase* c : CasesOf("conv3d")) cases.push_back(c);
  for (const OpCase* c : cases) {
    const ops::ConvGeometry g =
        ops::ConvGeometryOf(c->attrs, c->inputs[0].type.shape, c->inputs[1].type.shape);
    if (g.n == 0) continue;
    for (const cudnnDataType_t dtype : kDTypes) {
      for (const ConvProduct product : kProducts) {
        const CudnnConv conv = ConvOf(g, product, dtype);
        const auto plans = Find(conv, 1);
        EXPECT_TRUE(plans.ok()) << conv.ToString() << ": " << Message(plans.status());
      }
      CudnnConv with_bias = ConvOf(g, ConvProduct::kForward, dtype);
      with_bias.has_bias = true;
      with_bias.bias_dtype = dtype;
      EXPECT_TRUE(Find(with_bias, 1).ok()) << with_bias.ToString();
      if (dtype == CUDNN_DATA_FLOAT) continue;
      const CudnnConv wide =
          ConvRun::Widened(ConvOf(g, ConvProduct::kGradWeight, dtype), /*limit=*/1);
      EXPECT_TRUE(Find(wide, 1).ok()) << wide.ToString();
    }
  }
}

TEST(CudnnPlanTest, StepsOfWidenedOperands) {
  CudnnConv conv = SmallConv(ConvProduct::kGradWeight, CUDNN_DATA_HALF);
  conv.x.dims[0] = conv.y.dims[0] = 12;
  const int64_t image = (16 + 24) * 9 * 7 * 4;
  const auto images = [&](int64_t limit) { return ConvRun::Widened(conv, limit).x.dims[0]; };
  EXPECT_EQ(images(12 * image), 12);
  EXPECT_EQ(images(12 * image - 1), 6);
  EXPECT_EQ(images(5 * image), 4);
  EXPECT_EQ(images(1), 1);
  EXPECT_FALSE(ConvRun::Widened(conv, 12 * image).accumulate);
  const CudnnConv steps = ConvRun::Widened(conv, image);
  EXPECT_TRUE(steps.accumulate);
  EXPECT_EQ(steps.y.dims[0], 1);
  EXPECT_EQ(steps.x.dtype, CUDNN_DATA_FLOAT);
  EXPECT_EQ(steps.w.dtype, CUDNN_DATA_FLOAT);
}

}  // namespace
}  // namespace halftone::testing
