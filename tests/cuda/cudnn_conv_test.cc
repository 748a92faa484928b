// Convolutions through cuDNN: what serves which, measuring, steps, capture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "halftone/kernels/cuda/cudnn/conv_run.h"
#include "halftone/kernels/cuda/ops/cudnn_nodes.h"
#include "halftone/kernels/cuda/runtime/autotune_cache.h"
#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/cuda/scoped_environment.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tensors.h"
#include "halftone/tests/support/tolerances.h"

namespace halftone::testing {
namespace {

using cuda::ConvProduct;
using cuda::ConvRun;
using cuda::CudnnConv;
using cuda::CudnnTensor;
using kernels::Kernel;
using ::testing::HasSubstr;

constexpr const char* kOps[] = {"conv2d", "conv2d_grad_input", "conv2d_grad_weight",
                                "conv3d", "conv3d_grad_input", "conv3d_grad_weight"};

absl::StatusOr<std::unique_ptr<Kernel>> Named(const ir::Node& node, const std::string& how) {
  CudaCandidates(node.op().name);
  return kernels::KernelRegistry::Global().CreateNamed(node, "cuda:" + how + ":" + node.op().name);
}

// The selection order puts cuDNN first, and it refuses only what is listed here.
TEST(CudnnConvTest, ServesEveryCase) {
  for (const char* op : kOps) {
    for (const OpCase* c : CasesOf(op)) {
      for (const DType dtype : c->dtypes) {
        for (const ir::Layout layout : {ir::Layout::kPlain, ir::Layout::kChannelsLast}) {
          const auto graph = BuildCaseGraph(*c, dtype, layout);
          const ir::Node& node = *CaseNode(*graph);
          CudaCandidates(op);
          const auto kernel = kernels::KernelRegistry::Global().Select(node, Device::Kind::kCuda);
          ASSERT_TRUE(kernel.ok()) << c->name << ": " << Message(kernel.status());
          const bool low = dtype != DType::kF32;
          const bool wide_bias =
              low && node.num_inputs() > 2 && node.input_type(2).dtype == DType::kF32;
          const bool native = wide_bias || c->name.find("no_images") != std::string::npos;
          EXPECT_EQ((*kernel)->name(), std::string("cuda:") + (native ? "native:" : "cudnn:") + op)
              << c->name << " in " << Name(dtype)
              << (layout == ir::Layout::kPlain ? "" : ", channels-last");
        }
      }
    }
  }
}

const OpCase& FindCase(const std::string& name) {
  for (const OpCase& c : AllOpCases()) {
    if (c.name == name) return c;
  }
  internal::CheckFailed(__FILE__, __LINE__, "case", name.c_str());
}

TEST(CudnnConvTest, RefusalsHaveReasons) {
  const auto refusal = [](const std::string& name, DType dtype, bool mixed) {
    const auto graph = BuildCaseGraph(FindCase(name), dtype, ir::Layout::kChannelsLast);
    ir::Node& node = *CaseNode(*graph);
    if (mixed) node.mutable_output_types()[0].layout = ir::Layout::kPlain;
    return Message(Named(node, "cudnn").status());
  };
  EXPECT_EQ(refusal("conv2d/3x3", DType::kF32, true), "x and y lie in two layouts");
  const auto graph = BuildCaseGraph(FindCase("conv2d/3x3"), DType::kF32);
  ir::Node& node = *CaseNode(*graph);
  node.input(1).node->mutable_output_types()[0].layout = ir::Layout::kChannelsLast;
  EXPECT_EQ(Message(Named(node, "cudnn").status()), "w is not plain");
  EXPECT_EQ(refusal("conv2d/no_images", DType::kF32, false), "nothing to do");
  EXPECT_THAT(refusal("conv2d/3x3", DType::kF64, false), HasSubstr("no f64"));
}

// The library's handle serves one thread at a time, which plan and run here at once.
TEST(CudnnConvTest, ThreadsThatMakeKernels) {
  std::vector<std::thread> threads;
  std::atomic<int> made{0};
  constexpr int kThreads = 4, kEach = 100;
  CudaCandidates("conv2d");
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&made] {
      const auto graph = BuildCaseGraph(FindCase("conv2d/3x3"), DType::kF32);
      for (int i = 0; i < kEach; ++i) {
        const auto kernel =
            kernels::KernelRegistry::Global().CreateNamed(*CaseNode(*graph), "cuda:cudnn:conv2d");
        if (kernel.ok()) ++made;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, kThreads * kEach);
}

// x, w and y in two layouts go to our own kernel.
TEST(CudnnConvTest, MixedLayouts) {
  for (const char* name : {"conv2d/uneven", "conv2d_grad_input/uneven"}) {
    const OpCase& c = FindCase(name);
    const auto graph = BuildCaseGraph(c, DType::kF32, ir::Layout::kChannelsLast);
    ir::Node& node = *CaseNode(*graph);
    node.mutable_output_types()[0].layout = ir::Layout::kPlain;
    const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF32);
    const auto kernel = Named(node, "native");
    ASSERT_TRUE(kernel.ok());
    const auto got = RunOnDevice(**kernel, node, inputs);
    ASSERT_TRUE(got.ok()) << Message(got.status());
    EXPECT_TRUE(AgreesWithReference(c.op, (*got)[0], (*RunReference(node, inputs))[0]));
  }
}

TEST(CudnnConvTest, F64) {
  for (const char* op : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight", "conv2d_grad_bias",
                         "conv3d", "conv3d_grad_input", "conv3d_grad_weight", "conv3d_grad_bias"}) {
    for (const OpCase* c : CasesOf(op)) {
      if (!c->gradient) continue;  // the large ones
      const auto graph = BuildCaseGraph(*c, DType::kF64);
      const ir::Node& node = *CaseNode(*graph);
      const std::vector<Tensor> inputs = MakeCaseInputs(*c, DType::kF64);
      const auto kernel = Named(node, "native");
      ASSERT_TRUE(kernel.ok());
      const auto got = RunOnDevice(**kernel, node, inputs);
      ASSERT_TRUE(got.ok()) << Message(got.status());
      EXPECT_TRUE(AgreesWithReference(op, (*got)[0], (*RunReference(node, inputs))[0])) << c->name;
    }
  }
}

class CudnnTuningTest : public ::testing::Test {
  const ScopedEnvironment tuning_{"HALFTONE_AUTOTUNE", "1"};
};

std::string KeyOf(const CudnnConv& conv) {
  return Concat((*cuda::CudnnHandle::Current())->description(), " ", conv.ToString());
}

// A channels-last convolution of one image: x [1,8,5,6], w [16,8,3,3].
CudnnConv OneImage() {
  CudnnConv conv;
  conv.x = {CUDNN_DATA_FLOAT, {1, 8, 5, 6}, {240, 1, 48, 8}};
  conv.w = {CUDNN_DATA_FLOAT, {16, 8, 3, 3}, {72, 1, 24, 8}};
  conv.y = {CUDNN_DATA_FLOAT, {1, 16, 3, 4}, {192, 1, 64, 16}};
  conv.stride = conv.dilation = {1, 1};
  conv.padding = {0, 0};
  return conv;
}

TEST_F(CudnnTuningTest, ChoiceIsKeptAndChecked) {
  OpCase c = Case("conv2d", "tuned", {Reals({1, 8, 5, 6}), Reals({16, 8, 3, 3})});
  const auto graph = BuildCaseGraph(c, DType::kF32, ir::Layout::kChannelsLast);
  const ir::Node& node = *CaseNode(*graph);
  cuda::AutotuneCache& cache = cuda::AutotuneCache::Global();
  const std::string key = KeyOf(OneImage());
  ASSERT_FALSE(cache.Find(key).has_value());
  const auto first = Named(node, "cudnn");
  ASSERT_TRUE(first.ok()) << Message(first.status());
  const auto record = cache.Find(key);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ((*first)->implementation(), "engine " + *record);
  const auto again = Named(node, "cudnn");
  EXPECT_EQ((*again)->implementation(), "engine " + *record);
  // What others wrote there: passed over, and measured anew.
  for (const char* bad : {"", "direct", "direct 99999", "widened 0", "sideways 0", "direct 0 2=99",
                          "direct -1", "direct 2"}) {
    cache.Store(key, bad);
    const auto kernel = Named(node, "cudnn");
    ASSERT_TRUE(kernel.ok()) << bad << ": " << Message(kernel.status());
    EXPECT_NE((*kernel)->implementation(), std::string("engine ") + bad);
    EXPECT_NE(cache.Find(key), bad);
    const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF32);
    const auto got = RunOnDevice(**kernel, node, inputs);
    ASSERT_TRUE(got.ok()) << Message(got.status());
    EXPECT_TRUE(AgreesWithReference("conv2d", (*got)[0], (*RunReference(node, inputs))[0]));
  }
}

#if defined(HALFTONE_CUDA_EMULATED)

// The emulated library has an engine whose plans fail when they are run: of OneImage among others,
// for a window of 17 rows alone.
TEST_F(CudnnTuningTest, PlansThatFailAreNotTaken) {
  const OpCase one = Case("conv2d", "one_image", {Reals({1, 8, 5, 6}), Reals({16, 8, 3, 3})});
  const auto graph = BuildCaseGraph(one, DType::kF32, ir::Layout::kChannelsLast);
  const std::string key = KeyOf(OneImage());
  cuda::AutotuneCache::Global().Store(key, "direct 7");
  const auto kernel = Named(*CaseNode(*graph), "cudnn");
  ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
  EXPECT_NE((*kernel)->implementation(), "engine direct 7");
  EXPECT_NE(cuda::AutotuneCache::Global().Find(key), "direct 7");

  const OpCase tall = Case("conv2d", "tall", {Reals({1, 2, 20, 3}), Reals({2, 2, 17, 1})});
  for (const char* tuned : {"0", "1"}) {
    const ScopedEnvironment tuning("HALFTONE_AUTOTUNE", tuned);
    const auto tall_graph = BuildCaseGraph(tall, DType::kF32, ir::Layout::kChannelsLast);
    const ir::Node& node = *CaseNode(*tall_graph);
    EXPECT_THAT(Message(Named(node, "cudnn").status()), HasSubstr("CUDNN_STATUS_EXECUTION_FAILED"));
    const auto selected = kernels::KernelRegistry::Global().Select(node, Device::Kind::kCuda);
    ASSERT_TRUE(selected.ok()) << Message(selected.status());
    EXPECT_EQ((*selected)->name(), "cuda:native:conv2d");
  }
}

// A weight gradient whose sums the emulated engine adds fastest in 8 parts, of settings that no heuristic names. The
// library's default is taken without tuning.
TEST_F(CudnnTuningTest, SettingsThatNoHeuristicNames) {
  // Small, so that its arithmetic takes no time beside what the engine adds.
  const OpCase c =
      Case("conv2d_grad_weight", "searched", {Reals({1, 8, 4, 4}), Reals({1, 8, 2, 2})},
           {{"shape", std::vector<int64_t>{8, 8, 3, 3}}, {"out", std::string("f32")}});
  const auto graph = BuildCaseGraph(c, DType::kF16, ir::Layout::kChannelsLast);
  const ir::Node& node = *CaseNode(*graph);
  const std::string key = KeyOf(kernels::CudnnConvOf(node, ConvProduct::kGradWeight).conv);
  {
    const ScopedEnvironment untuned("HALFTONE_AUTOTUNE", "0");
    EXPECT_EQ((*Named(node, "cudnn"))->implementation(), "engine direct 1");
  }
  const auto kernel = Named(node, "cudnn");
  ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
  const std::string fastest = Concat(static_cast<int>(CUDNN_KNOB_TYPE_SPLIT_K_SLC), "=8");
  EXPECT_THAT((*kernel)->implementation(), HasSubstr("engine direct 1 "));
  EXPECT_THAT((*kernel)->implementation(), HasSubstr(fastest));
  const auto record = cuda::AutotuneCache::Global().Find(key);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ((*kernel)->implementation(), "engine " + *record);
  // From the cache: nothing is searched again.
  const std::string other =
      "direct 1 " + Concat(static_cast<int>(CUDNN_KNOB_TYPE_SPLIT_K_SLC), "=3");
  cuda::AutotuneCache::Global().Store(key, other);
  const auto rebuilt = Named(node, "cudnn");
  ASSERT_TRUE(rebuilt.ok()) << Message(rebuilt.status());
  EXPECT_EQ((*rebuilt)->implementation(), "engine " + other);
  const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF16);
  for (const auto& made : {std::cref(*kernel), std::cref(*rebuilt)}) {
    const auto got = RunOnDevice(*made.get(), node, inputs);
    ASSERT_TRUE(got.ok()) << Message(got.status());
    EXPECT_TRUE(AgreesWithReference(c.op, (*got)[0], (*RunReference(node, inputs))[0]));
  }
}

#endif

TEST_F(CudnnTuningTest, TunedKernelsAgreeWithTheReference) {
  for (const char* name :
       {"conv2d/same", "conv2d/same_bias", "conv2d_grad_input/same", "conv2d_grad_weight/same",
        "conv2d_grad_weight/same_out_f32", "conv2d_grad_weight/blocked_out_f32"}) {
    const OpCase& c = FindCase(name);
    const auto graph = BuildCaseGraph(c, DType::kBF16, ir::Layout::kChannelsLast);
    const ir::Node& node = *CaseNode(*graph);
    const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kBF16);
    const auto kernel = Named(node, "cudnn");
    ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
    const auto got = RunOnDevice(**kernel, node, inputs);
    ASSERT_TRUE(got.ok()) << name << ": " << Message(got.status());
    EXPECT_TRUE(AgreesWithReference(c.op, (*got)[0], (*RunReference(node, inputs))[0])) << name;
  }
}

// An f32 weight gradient in one step an image: small whole numbers, so that every sum is exact. Of
// `conv`, which is of one image, in channels-last order.
void CheckSteps(CudnnConv conv) {
  conv.product = ConvProduct::kGradWeight;
  constexpr int64_t kImages = 3;
  conv.x.dtype = conv.y.dtype = CUDNN_DATA_BFLOAT16;
  conv.x.dims[0] = conv.y.dims[0] = kImages;
  const CudnnConv wide = ConvRun::Widened(conv, 1);
  ASSERT_EQ(wide.x.dims[0], 1);
  const auto handle = cuda::CudnnHandle::Current();
  ASSERT_TRUE(handle.ok()) << Message(handle.status());
  const cuda::CudnnTarget target{(*handle)->get(), nullptr};
  const auto graph = cuda::CudnnConvGraph::Make(wide, target);
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  auto plans = cuda::FindCudnnPlans(*graph, target, 1);
  ASSERT_TRUE(plans.ok()) << Message(plans.status());
  ConvRun run({conv, /*reorder_filter=*/true}, std::move((*plans)[0]), *handle);

  const auto shape_of = [](const CudnnTensor& t) { return Shape(t.dims); };
  const auto whole = [&](const CudnnTensor& t, int64_t salt) {
    std::vector<double> values(shape_of(t).num_elements());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>((static_cast<int64_t>(i) * 7 + salt) % 5) - 2;
    }
    return Tensor::Of(DType::kBF16, shape_of(t), values);
  };
  const Tensor x = whole(conv.x, 1), y = whole(conv.y, 3);
  const auto relaid = [](const Tensor& t) {
    const ir::ValueType plain{DType::kBF16, t.shape()};
    ir::ValueType last = plain;
    last.layout = ir::Layout::kChannelsLast;
    return Relaid(t, plain, last);
  };
  const Tensor x_last = relaid(x), y_last = relaid(y);
  const DeviceMemory x_device(x_last.raw(), x_last.num_bytes());
  const DeviceMemory y_device(y_last.raw(), y_last.num_bytes());
  Tensor got = Tensor::Empty(DType::kF32, shape_of(conv.w));
  const DeviceMemory dw(got.num_bytes()), workspace(run.workspace_bytes() + 1);
  // Of any alignment.
  void* const odd = static_cast<char*>(workspace.data()) + 1;
  for (int i = 0; i < 2; ++i) {
    const absl::Status status =
        run.Launch({x_device.data(), dw.data(), y_device.data(), nullptr}, odd, nullptr);
    ASSERT_TRUE(status.ok()) << Message(status);
  }
  ASSERT_EQ(dw.Read(got.raw()), cudaSuccess);
  const std::vector<int64_t> filter(conv.w.dims.begin(), conv.w.dims.end());
  const Tensor want =
      RunOp("conv2d_grad_weight", {x, y}, {{"shape", filter}, {"out", std::string("f32")}})[0];
  EXPECT_TRUE(BitEqual(got, want));
}

TEST(CudnnConvRunTest, StepsAddUp) { CheckSteps(OneImage()); }

// Every image but the first begins where no access of several elements may.
TEST(CudnnConvRunTest, StepsOfOddImages) {
  CudnnConv conv = OneImage();
  conv.x = {CUDNN_DATA_FLOAT, {1, 3, 5, 5}, {75, 1, 15, 3}};
  conv.w = {CUDNN_DATA_FLOAT, {3, 3, 3, 3}, {27, 1, 9, 3}};
  conv.y = {CUDNN_DATA_FLOAT, {1, 3, 3, 3}, {27, 1, 9, 3}};
  CheckSteps(conv);
}

// A captured launch, replayed over other values and after a launch with other pointers.
TEST(CudnnConvRunTest, Capture) {
  const OpCase& c = FindCase("conv2d/blocked_bias");
  const auto graph = BuildCaseGraph(c, DType::kF32, ir::Layout::kChannelsLast);
  const ir::Node& node = *CaseNode(*graph);
  const auto kernel = Named(node, "cudnn");
  ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
  const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF32);
  std::vector<DeviceMemory> operands;
  std::vector<const void*> pointers;
  for (const Tensor& t : inputs) {
    operands.emplace_back(t.num_bytes());
    pointers.push_back(operands.back().data());
  }
  const int64_t bytes = node.output_type().num_bytes();
  const DeviceMemory y(bytes), workspace((*kernel)->workspace_bytes());
  void* output = y.data();
  kernels::RunState state;
  cudaStream_t stream = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  state.stream = stream;
  // The first run loads the code, which a capture may not.
  (*kernel)->Run({pointers.data(), &output, workspace.data(), &state});
  CheckCuda(cudaStreamSynchronize(stream));
  CheckCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  (*kernel)->Run({pointers.data(), &output, workspace.data(), &state});
  cudaGraph_t captured = nullptr;
  CheckCuda(cudaStreamEndCapture(stream, &captured));
  ASSERT_TRUE(state.error.ok()) << Message(state.error);
  cudaGraphExec_t replay = nullptr;
  CheckCuda(cudaGraphInstantiate(&replay, captured, 0));
  for (size_t i = 0; i < inputs.size(); ++i) {
    ir::ValueType plain = node.input_type(static_cast<int>(i));
    plain.layout = ir::Layout::kPlain;
    operands[i].Write(Relaid(inputs[i], plain, node.input_type(static_cast<int>(i))).raw());
  }
  CheckCuda(cudaDeviceSynchronize());
  CheckCuda(cudaGraphLaunch(replay, stream));
  CheckCuda(cudaStreamSynchronize(stream));
  Tensor got = Tensor::Empty(DType::kF32, node.output_type().shape);
  ASSERT_EQ(y.Read(got.raw()), cudaSuccess);
  ir::ValueType plain = node.output_type();
  plain.layout = ir::Layout::kPlain;
  EXPECT_TRUE(AgreesWithReference("conv2d", Relaid(got, node.output_type(), plain),
                                  (*RunReference(node, inputs))[0]));
  CheckCuda(cudaGraphExecDestroy(replay));
  CheckCuda(cudaGraphDestroy(captured));
  CheckCuda(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace halftone::testing
