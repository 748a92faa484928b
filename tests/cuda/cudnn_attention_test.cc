// Attention through cuDNN: what serves which, beside our own kernels, in steps over the batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "halftone/kernels/cuda/cudnn/attention_run.h"
#include "halftone/tests/cuda/cudnn_graphs.h"
#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tensors.h"
#include "halftone/tests/support/tolerances.h"

namespace halftone::testing {
namespace {

using cuda::AttentionRun;
using cuda::CudnnAttention;
using kernels::Kernel;
using ::testing::HasSubstr;

constexpr const char* kForward = "scaled_dot_product_attention";
constexpr const char* kGradient = "scaled_dot_product_attention_grad";

absl::StatusOr<std::unique_ptr<Kernel>> AttentionNamed(const ir::Node& node,
                                                       const std::string& how) {
  CudaCandidates(node.op().name);
  return kernels::KernelRegistry::Global().CreateNamed(node, "cuda:" + how + ":" + node.op().name);
}

const OpCase& AttentionCase(const std::string& name) {
  for (const OpCase& c : AllOpCases()) {
    if (c.name == name) return c;
  }
  internal::CheckFailed(__FILE__, __LINE__, "case", name.c_str());
}

// The cases that have neither mask nor dropout, whole packs of columns, keys, and a square under a
// diagonal; read in place where parts begin at whole 64 bytes.
TEST(CudnnAttentionTest, ServesWhatItCan) {
  const std::set<std::string> served = {
      "one_query",        "chunks",           "low_tiles_plain",        "low_tiles_one_key",
      "low_tiles_square", "low_tiles_chunks", "low_tiles_short_square", "packed_low_tiles"};
  for (const std::string op : {kForward, kGradient}) {
    size_t count = 0;
    for (const OpCase* c : CasesOf(op)) {
      for (const DType dtype : c->dtypes) {
        const auto graph = BuildCaseGraph(*c, dtype);
        const ir::Node& node = *CaseNode(*graph);
        CudaCandidates(op);
        const auto kernel = kernels::KernelRegistry::Global().Select(node, Device::Kind::kCuda);
        ASSERT_TRUE(kernel.ok()) << c->name << ": " << Message(kernel.status());
        const bool by_cudnn = IsLow(dtype) && served.contains(c->name.substr(op.size() + 1));
        EXPECT_EQ((*kernel)->name(), "cuda:" + std::string(by_cudnn ? "cudnn:" : "native:") + op)
            << c->name << " in " << Name(dtype);
        count += by_cudnn ? 1 : 0;
      }
    }
    EXPECT_EQ(count, 2 * served.size()) << "a case has another name";
  }
}

TEST(CudnnAttentionTest, RefusalsHaveReasons) {
  const auto refusal = [](const std::string& name) {
    const auto graph = BuildCaseGraph(AttentionCase(name), DType::kBF16);
    return Message(AttentionNamed(*CaseNode(*graph), "cudnn").status());
  };
  const std::string forward = kForward, gradient = kGradient;
  EXPECT_EQ(refusal(forward + "/low_tiles_mask"), "a mask");
  EXPECT_EQ(refusal(gradient + "/low_tiles_mask"), "a mask");
  EXPECT_EQ(refusal(forward + "/low_tiles_dropout"), "dropout");
  EXPECT_EQ(refusal(forward + "/low_tiles_causal"), "causal with 81 queries and 149 keys");
  EXPECT_EQ(refusal(forward + "/plain"), "4 columns; expected a multiple of 8, at most 256");
  EXPECT_EQ(refusal(forward + "/low_tiles_no_keys"), "nothing to do");
  const auto graph = BuildCaseGraph(AttentionCase(forward + "/chunks"), DType::kF32);
  EXPECT_THAT(Message(AttentionNamed(*CaseNode(*graph), "cudnn").status()), HasSubstr("no f32"));
}

// Stats of either go to the gradient of the other.
TEST(CudnnAttentionTest, SharesItsStatsWithOurKernels) {
  for (const std::string variant : {"low_tiles_square", "low_tiles_plain"}) {
    const OpCase& c = AttentionCase(kForward + ("/" + variant));
    const OpCase& grad_case = AttentionCase(kGradient + ("/" + variant));
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      const auto graph = BuildCaseGraph(c, dtype), grad_graph = BuildCaseGraph(grad_case, dtype);
      const ir::Node &node = *CaseNode(*graph), &grad = *CaseNode(*grad_graph);
      const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
      const Tensor dy = MakeCaseInputs(grad_case, dtype)[5];
      for (const auto& [first, second] : {std::pair("cudnn", "native"), {"native", "cudnn"}}) {
        const auto forward = AttentionNamed(node, first), backward = AttentionNamed(grad, second);
        ASSERT_TRUE(forward.ok()) << Message(forward.status());
        ASSERT_TRUE(backward.ok()) << Message(backward.status());
        const auto made = RunOnDevice(**forward, node, inputs);
        ASSERT_TRUE(made.ok()) << Message(made.status());
        const auto got = RunOnDevice(**backward, grad,
                                     {inputs[0], inputs[1], inputs[2], (*made)[0], (*made)[1], dy});
        ASSERT_TRUE(got.ok()) << Message(got.status());
        const std::vector<Tensor> exact = *RunReference(node, inputs);
        const std::vector<Tensor> want =
            *RunReference(grad, {inputs[0], inputs[1], inputs[2], exact[0], exact[1], dy});
        Slack slack = grad_case.slack;
        slack.of_largest_in_low *= 2;  // y is rounded too, before it is multiplied
        for (size_t i = 0; i < want.size(); ++i) {
          EXPECT_TRUE(AgreesWithReference(kGradient, (*got)[i], want[i], slack))
              << variant << " in " << Name(dtype) << ": " << second << " after " << first
              << ", gradient " << i;
        }
      }
    }
  }
}

// bf16, self-attention of `batch` x `heads` x `length` x `columns`.
CudnnAttention SelfAttention(int64_t batch, int64_t heads, int64_t length, int64_t columns) {
  CudnnAttention a;
  a.q = {CUDNN_DATA_BFLOAT16,
         {batch, heads, length, columns},
         {heads * length * columns, length * columns, columns, 1}};
  a.k = a.v = a.y = a.dq = a.dk = a.dv = a.q;
  a.gradient = true;
  return a;
}

TEST(CudnnAttentionTest, StepsOverTheBatch) {
  // 2 heads of whole tiles 64 x 128, 16 bit: 32,768 bytes a step of one.
  const CudnnAttention a = SelfAttention(6, 2, 64, 32);
  const auto batch = [&](int64_t limit) { return AttentionRun::OneStep(a, limit).q.dims[0]; };
  EXPECT_EQ(batch(6 * 32768), 6);
  EXPECT_EQ(batch(6 * 32768 - 1), 3);
  EXPECT_EQ(batch(2 * 32768), 2);
  EXPECT_EQ(batch(1), 1);
  // GPT-2 small, 8 x 1024: 24 MiB of each, which all fit.
  EXPECT_EQ(AttentionRun::OneStep(SelfAttention(8, 12, 1024, 64)).q.dims[0], 8);
  EXPECT_EQ(AttentionRun::OneStep(SelfAttention(16, 12, 1024, 64)).q.dims[0], 8);
  // 8-byte steps of the stats: everything at once.
  EXPECT_EQ(AttentionRun::OneStep(SelfAttention(6, 2, 1, 32), 1).q.dims[0], 6);
  CudnnAttention forward = a;
  forward.gradient = false;
  EXPECT_EQ(AttentionRun::OneStep(forward, 1).q.dims[0], 6);
}

// The gradient of a batch in one step and in three, bit for bit.
TEST(CudnnAttentionTest, StepsGiveTheSame) {
  const CudnnAttention whole = SelfAttention(3, 2, 16, 8);
  CudnnAttention part = whole;
  for (auto* t : part.tensors()) t->dims[0] = 1;
  const auto elements = static_cast<size_t>(whole.q.elements());
  const auto rows = static_cast<size_t>(whole.rows());
  std::vector<uint16_t> values(elements);
  for (size_t i = 0; i < elements; ++i) {
    values[i] = F32ToBF16Bits(static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 64);
  }
  const std::vector<float> log_sum_exps(rows, 3.0F);
  const DeviceMemory operand(values.data(), elements * 2);
  const DeviceMemory log_sum_exp(log_sum_exps.data(), rows * 4), delta(rows * 4);
  auto* const handle = *cuda::CudnnHandle::Current();
  const cuda::CudnnTarget target{handle->get(), nullptr};
  std::vector<std::vector<uint16_t>> results;
  std::optional<cuda::CudnnChoice> choice;
  for (const CudnnAttention& step : {whole, part}) {
    const auto graph = cuda::CudnnAttentionGraph::Make(step, target);
    ASSERT_TRUE(graph.ok()) << Message(graph.status());
    // The engine of both, which the library might choose by the size.
    auto plan = [&]() -> absl::StatusOr<cuda::CudnnPlan> {
      if (choice.has_value()) return cuda::RebuildCudnnPlan(*graph, target, *choice);
      HT_ASSIGN_OR_RETURN(auto plans, cuda::FindCudnnPlans(*graph, target, 1));
      return std::move(plans[0]);
    }();
    ASSERT_TRUE(plan.ok()) << Message(plan.status());
    choice = plan->choice;
    AttentionRun run(whole, *std::move(plan), handle);
    const DeviceMemory dq(elements * 2), dk(elements * 2), dv(elements * 2);
    const DeviceMemory workspace(run.workspace_bytes());
    cuda::AttentionPointers p;
    p.q = p.k = p.v = p.dy = operand.data();
    p.y = operand.data();
    p.log_sum_exp = log_sum_exp.data();
    p.delta = delta.data();
    p.dq = dq.data();
    p.dk = dk.data();
    p.dv = dv.data();
    const absl::Status status = run.Launch(p, workspace.data(), nullptr);
    ASSERT_TRUE(status.ok()) << Message(status);
    for (const DeviceMemory* d : {&dq, &dk, &dv}) {
      results.emplace_back(elements);
      CheckCuda(d->Read(results.back().data()));
    }
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(results[i], results[3 + i]) << "gradient " << i;
  EXPECT_NE(results[0], std::vector<uint16_t>(elements)) << "nothing was computed";
}

#if defined(HALFTONE_CUDA_EMULATED)
// Of the emulated engines the first adds in any order; it and the one that fails are passed over.
TEST(CudnnAttentionTest, EnginesThatBreakAPromiseAreRefused) {
  for (const std::string op : {kForward, kGradient}) {
    const auto graph = BuildCaseGraph(AttentionCase(op + "/chunks"), DType::kF16);
    const auto kernel = AttentionNamed(*CaseNode(*graph), "cudnn");
    ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
    EXPECT_THAT((*kernel)->implementation(), HasSubstr("engine 1 "));
  }
}
#endif

}  // namespace
}  // namespace halftone::testing
