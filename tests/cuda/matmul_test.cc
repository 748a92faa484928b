// matmul and linear on the device beyond the case table: awkward sizes, how batches are joined,
// what the plan keeps and obeys.
#include <cuda_fp16.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/kernels/cuda/cublaslt/plan.h"
#include "halftone/kernels/cuda/device/matmul_geometry.h"
#include "halftone/kernels/cuda/runtime/autotune_cache.h"
#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/cuda/scoped_environment.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tolerances.h"

#if defined(HALFTONE_CUDA_EMULATED)
#include "halftone/tests/cuda_emulation/control.h"
#endif

namespace halftone::testing {
namespace {

using cuda::CublasLtPlan;
using cuda::MatmulGeometry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

OpCase MatmulCase(const Shape& a, const Shape& b, bool ta, bool tb, const std::string& out = "") {
  return Case("matmul", "a_test", {Reals(a), Reals(b)},
              {{"transpose_a", ta}, {"transpose_b", tb}, {"out", out}});
}

MatmulGeometry GeometryOfCase(const OpCase& c, DType dtype = DType::kF32) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
  return cuda::GeometryOf(*CaseNode(*graph));
}

// Every candidate agrees with the reference; at least `candidates` serve.
void CheckMatmul(const OpCase& c, DType dtype, int candidates) {
  const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
  const ir::Node& node = *CaseNode(*graph);
  const auto want = RunReference(node, inputs);
  ASSERT_TRUE(want.ok()) << Message(want.status());
  int served = 0;
  for (const auto* candidate : CudaCandidates(c.op)) {
    auto kernel = kernels::KernelRegistry::Global().CreateNamed(node, candidate->name);
    if (!kernel.ok()) continue;
    ++served;
    const auto got = RunOnDevice(**kernel, node, inputs);
    ASSERT_TRUE(got.ok()) << Message(got.status());
    EXPECT_TRUE(AgreesWithReference(c.op, (*got)[0], (*want)[0]))
        << candidate->name << " " << node.Label();
  }
  EXPECT_EQ(served, candidates);
}

TEST(CudaMatmul, AgreesAtAwkwardSizes) {
  constexpr int64_t kSizes[] = {1, 31, 33, 65};
  constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64};
  int turn = 0;
  for (const int64_t m : kSizes) {
    for (const int64_t n : kSizes) {
      for (const int64_t k : kSizes) {
        // Transposes and dtypes in turn: each meets each size.
        const bool ta = (turn & 1) != 0, tb = (turn & 2) != 0;
        const DType dtype = kDTypes[(turn / 4 + turn / 16) % 4];
        const bool is_16_bit = dtype == DType::kF16 || dtype == DType::kBF16;
        const std::string out = is_16_bit && turn % 3 == 0 ? "f32" : "";
        ++turn;
        SCOPED_TRACE(Concat(m, "x", n, "x", k, " ", Name(dtype), ta ? " ta" : "", tb ? " tb" : "",
                            " ", out));
        const Shape a = ta ? Shape{k, m} : Shape{m, k}, b = tb ? Shape{n, k} : Shape{k, n};
        CheckMatmul(MatmulCase(a, b, ta, tb, out), dtype, dtype == DType::kF64 ? 1 : 2);
      }
    }
  }
}

TEST(CudaMatmul, AgreesInEveryKindOfBatch) {
  const struct {
    Shape a, b;
    bool ta, tb;
    int candidates;
  } cases[] = {
      {{3, 7, 5}, {3, 5, 9}, false, false, 2},            // one stack by one stack
      {{2, 3, 7, 5}, {5, 9}, false, false, 2},            // joined into rows
      {{2, 3, 5, 7}, {5, 9}, true, false, 2},             // not joined: A is transposed
      {{7, 5}, {2, 3, 9, 5}, false, true, 2},             // one A serves all
      {{2, 1, 7, 5}, {1, 3, 5, 9}, false, false, 1},      // the library has no such batch
      {{2, 3, 7, 5}, {2, 1, 5, 9}, false, false, 2},      // inner axis joined into rows
      {{2, 1, 3, 5, 7}, {1, 4, 3, 5, 9}, true, false, 1}  // three axes
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(Concat(c.a, " ", c.b));
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      CheckMatmul(MatmulCase(c.a, c.b, c.ta, c.tb), dtype, c.candidates);
    }
  }
}

TEST(MatmulGeometryTest, JoinsWhatLiesAlike) {
  // A stack by a shared matrix is one product of many rows.
  const MatmulGeometry rows = GeometryOfCase(MatmulCase({2, 3, 7, 5}, {5, 9}, false, false));
  EXPECT_EQ(rows.m, 42);
  EXPECT_THAT(rows.batch, IsEmpty());
  // Stacks of stacks are stacks.
  const MatmulGeometry stack = GeometryOfCase(MatmulCase({2, 3, 7, 5}, {2, 3, 5, 9}, false, false));
  EXPECT_EQ(stack.m, 7);
  EXPECT_THAT(stack.batch, ElementsAre(MatmulGeometry::BatchAxis{6, 35, 45}));
  // The rows of transposed matrices do not follow each other.
  const MatmulGeometry turned = GeometryOfCase(MatmulCase({2, 3, 5, 7}, {5, 9}, true, false));
  EXPECT_THAT(turned.batch, ElementsAre(MatmulGeometry::BatchAxis{6, 35, 0}));
  // Each operand repeated along the other's axis.
  const MatmulGeometry mixed = GeometryOfCase(MatmulCase({2, 1, 7, 5}, {1, 3, 5, 9}, false, false));
  EXPECT_THAT(mixed.batch, ElementsAre(MatmulGeometry::BatchAxis{2, 35, 0},
                                       MatmulGeometry::BatchAxis{3, 0, 45}));
}

TEST(CublasLtPlanTest, RefusesWithAReason) {
  const auto refusal = [](const OpCase& c, DType dtype) {
    const absl::Status status = CublasLtPlan::Supports(GeometryOfCase(c, dtype));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    return Message(status);
  };
  EXPECT_THAT(refusal(MatmulCase({2, 3}, {3, 4}, false, false), DType::kF64), HasSubstr("f64"));
  EXPECT_THAT(
      refusal(Case("linear", "wide_bias", {Reals({2, 3}), Reals({4, 3}), Pinned(Reals({4}))}),
              DType::kF16),
      HasSubstr("a bias in f32; the library takes that of y"));
  EXPECT_THAT(refusal(MatmulCase({2, 0}, {0, 4}, false, false), DType::kF32), HasSubstr("empty"));
  EXPECT_THAT(refusal(MatmulCase({0, 2}, {2, 4}, false, false), DType::kF32), HasSubstr("empty"));
  EXPECT_THAT(refusal(MatmulCase({2, 1, 3, 4}, {1, 5, 4, 3}, false, false), DType::kF32),
              HasSubstr("the batch repeats operands along some axes"));
}

// y = [1 + 2^-12] [1 + 2^-12]; f32 holds the square but for its last term, TF32 only 1.
std::vector<float> SquareOfAlmostOne(bool tf32) {
  MatmulGeometry g = GeometryOfCase(MatmulCase({16, 16}, {16, 16}, false, false));
  g.tf32 = tf32;
  auto plan = CublasLtPlan::Make(g);
  EXPECT_TRUE(plan.ok()) << Message(plan.status());
  std::vector<float> diagonal(256, 0.0F);
  for (int i = 0; i < 16; ++i) diagonal[i * 17] = 1 + 0x1p-12F;
  const DeviceArray<float> a(diagonal), b(diagonal), y(256);
  const DeviceMemory workspace(plan->workspace_bytes());
  EXPECT_TRUE(plan->Run({.a = a.data(), .b = b.data()}, y.data(), workspace.data(), nullptr).ok());
  return y.Get();
}

TEST(CublasLtPlanTest, KeepsF32UnlessTf32IsAllowed) {
  EXPECT_EQ(SquareOfAlmostOne(false)[17], 1 + 0x1p-11F);
#if defined(HALFTONE_CUDA_EMULATED)
  // A real library may use TF32 then, or not.
  EXPECT_EQ(SquareOfAlmostOne(true)[17], 1.0F);
#endif
}

TEST(CublasLtPlanTest, RunsInACapturedGraph) {
  // The sum is long enough for a workspace.
  const OpCase c = Case("linear", "captured", {Reals({5, 70}), Reals({3, 70}), Reals({3})});
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF16);
  const ir::Node& node = *CaseNode(*graph);
  CudaCandidates(c.op);
  auto kernel = kernels::KernelRegistry::Global().CreateNamed(node, "cuda:cublaslt:linear");
  ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
  const DeviceArray<__half> x(350), w(std::vector<__half>(210, __half(0.5F)));
  const DeviceArray<__half> bias(3);
  const DeviceArray<__half> y(15);
  const DeviceMemory workspace((*kernel)->workspace_bytes());
  const void* inputs[] = {x.data(), w.data(), bias.data()};
  void* outputs[] = {y.data()};
  kernels::RunState state;
  cudaStream_t stream = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  state.stream = stream;
  // The first run loads the code, which a capture may not.
  (*kernel)->Run({inputs, outputs, workspace.data(), &state, /*fault_id=*/1});
  CheckCuda(cudaStreamSynchronize(stream));
  CheckCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  (*kernel)->Run({inputs, outputs, workspace.data(), &state, /*fault_id=*/1});
  cudaGraph_t captured = nullptr;
  CheckCuda(cudaStreamEndCapture(stream, &captured));
  ASSERT_TRUE(state.error.ok()) << Message(state.error);
  cudaGraphExec_t executable = nullptr;
  CheckCuda(cudaGraphInstantiate(&executable, captured, 0));
  for (const float value : {1.0F, 2.0F}) {
    const std::vector<__half> xs(350, __half(value));
    const std::vector<__half> biases(3, __half(10 * value));
    CheckCuda(cudaMemcpy(x.data(), xs.data(), 350 * sizeof(__half), cudaMemcpyHostToDevice));
    CheckCuda(cudaMemcpy(bias.data(), biases.data(), 3 * sizeof(__half), cudaMemcpyHostToDevice));
    CheckCuda(cudaDeviceSynchronize());
    CheckCuda(cudaGraphLaunch(executable, stream));
    CheckCuda(cudaStreamSynchronize(stream));
    // 70 products of value and 1/2.
    for (const __half element : y.Get()) EXPECT_EQ(__half2float(element), 45 * value);
  }
  CheckCuda(cudaGraphExecDestroy(executable));
  CheckCuda(cudaGraphDestroy(captured));
  CheckCuda(cudaStreamDestroy(stream));
}

#if defined(HALFTONE_CUDA_EMULATED)

uint64_t CallsToMake(const MatmulGeometry& g) {
  emulation::ResetStatistics();
  const auto plan = CublasLtPlan::Make(g);
  EXPECT_TRUE(plan.ok()) << Message(plan.status());
  return emulation::GetStatistics().library_calls;
}

TEST(CublasLtPlanTest, MeasuresAProductOnce) {
  const ScopedEnvironment on("HALFTONE_AUTOTUNE", nullptr);
  const MatmulGeometry g = GeometryOfCase(MatmulCase({17, 90}, {90, 19}, false, false));
  const size_t bytes = emulation::LiveDeviceBytes();
  EXPECT_GT(CallsToMake(g), 3);
  EXPECT_EQ(emulation::LiveDeviceBytes(), bytes);
  EXPECT_EQ(CallsToMake(g), 0);
  MatmulGeometry other = g;
  other.transpose_b = true;
  EXPECT_GT(CallsToMake(other), 3);
  const ScopedEnvironment off("HALFTONE_AUTOTUNE", "0");
  other.transpose_a = true;
  EXPECT_EQ(CallsToMake(other), 0);
}

TEST(CublasLtPlanTest, DoesNotTrustWhatTheCacheHolds) {
  const ScopedEnvironment on("HALFTONE_AUTOTUNE", nullptr);
  const MatmulGeometry g = GeometryOfCase(MatmulCase({17, 91}, {91, 19}, false, false));
  const auto key = CublasLtPlan::CacheKey(g);
  ASSERT_TRUE(key.ok());
  CallsToMake(g);
  const std::string good = *cuda::AutotuneCache::Global().Find(*key);
  std::string damaged = good;
  damaged[5] ^= 1;
  for (const std::string& stored :
       {std::string(), std::string("short"), good + "long", std::string(64, '\0'), damaged}) {
    cuda::AutotuneCache::Global().Store(*key, stored);
    EXPECT_GT(CallsToMake(g), 3);  // measured anew
    EXPECT_EQ(CallsToMake(g), 0);
  }
}

TEST(CublasLtPlanTest, TakesTheFirstSuggestionWithoutRoomToMeasure) {
  const ScopedEnvironment on("HALFTONE_AUTOTUNE", nullptr);
  const MatmulGeometry g = GeometryOfCase(MatmulCase({64, 92}, {92, 64}, false, false));
  {
    emulation::Options options = emulation::GetOptions();
    options.memory_bytes = emulation::LiveDeviceBytes() + 40000;
    const emulation::ScopedOptions scope(options);
    EXPECT_EQ(CallsToMake(g), 0);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  }
  EXPECT_GT(CallsToMake(g), 3);
}

#endif

}  // namespace
}  // namespace halftone::testing
