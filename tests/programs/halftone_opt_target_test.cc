// halftone_opt --target gives the graph that compiling on such a device gives, for every processor
// that this one can pass for.
#include <map>
#include <sstream>
#include <string>

#include "halftone/core/cpu_features.h"
#include "halftone/graph/ops/support/record.h"
#include "halftone/tests/nn/compiled_steps.h"
#include "halftone/tests/programs/start.h"

namespace halftone::testing {
namespace {

TEST(HalftoneOptTarget, IsTheDeviceOfThatName) {
  int steps = 0;
  CompileSteps(Device::Cpu(), [&steps](const std::string& traced, const std::string& compiled,
                                       const std::string& target) {
    const Result run = Start("tools/halftone_opt", traced + " --pipeline --target=" + target);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.out, compiled) << target;
    ++steps;
  });
  EXPECT_EQ(steps, 12);
}

// "%fc1_linear = linear: cpu:widened:linear (..)" gives {"fc1_linear", "cpu:widened:linear"}.
std::map<std::string, std::string> KernelsOf(const std::string& log) {
  std::map<std::string, std::string> kernels;
  std::istringstream lines(log);
  for (std::string line, node, equals, op, kernel; std::getline(lines, line);) {
    if (line.rfind('%', 0) != 0) continue;  // a refusal
    std::istringstream(line.substr(1)) >> node >> equals >> op >> kernel;
    kernels[node] = kernel;
  }
  return kernels;
}

// How many nodes have 16-bit operands that a kernel may widen, and how many the graph says are.
struct Products {
  int low = 0, widened = 0;
};

template <typename Model>
Products CheckWidened(DType dtype) {
  Products products;
  Model model;
  model.config.enable_amp(true, {.dtype = dtype, .trim = false});
  const absl::Status status = model.compile(Model::Batch());
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) return products;
  const std::map<std::string, std::string> kernels = KernelsOf(model.kernel_log());
  for (const auto& node : model.compiled_graph()->nodes()) {
    if (kernels.count(node->name()) == 0) continue;
    const bool widened = kernels.at(node->name()).rfind("cpu:widened:", 0) == 0;
    EXPECT_EQ(ops::IsWidened(*node), widened) << model.kernel_log() << model.compiled_text();
    if (!node->attrs().Has("widened") || !IsLow(node->input_type(0).dtype)) continue;
    ++products.low;
    products.widened += widened ? 1 : 0;
  }
  return products;
}

// What computes in f32 on copies of 16-bit operands stands in the graph, and nothing else does.
TEST(HalftoneOptTarget, PrintsTheWideningOfTheKernelLog) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    EXPECT_GT(CheckWidened<Attention>(dtype).low, 0);
    EXPECT_GT(CheckWidened<Convolutions>(dtype).low, 0);
  }
  const Products bf16 = CheckWidened<Perceptron>(DType::kBF16);
  EXPECT_GT(bf16.low, 0);
  if (!CpuFeatures::Get().fast_bf16) {
    EXPECT_EQ(bf16.widened, bf16.low);
  } else if (CpuFeatures::Get().avx512_bf16) {
    EXPECT_EQ(bf16.widened, 0);
  }
}

TEST(HalftoneOptTarget, OtherProcessorsToo) {
  for (const char* processor :
       {"HALFTONE_SIMD=scalar", "HALFTONE_SIMD=avx2", "HALFTONE_BF16=widened",
        "HALFTONE_BF16=native", "HALFTONE_LAYOUT=nhwc"}) {
    const Result run =
        Start("tests/test_programs", "--gtest_filter=HalftoneOptTarget.*-*.OtherProcessorsToo",
              std::string("export ") + processor + ";");
    EXPECT_EQ(run.status, 0) << processor << "\n" << run.output;
  }
}

}  // namespace
}  // namespace halftone::testing
