// In-place pairs hold for every kernel: an output written over its input has the values that it has
// in memory of its own. Checked for each pair alone and for as many at once as fit together.

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "halftone/graph/ir/in_place.h"
#include "halftone/kernels/kernel.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"

namespace halftone::testing {
namespace {

using kernels::KernelCandidate;
using kernels::KernelRegistry;
using PortPairs = std::vector<ir::InPlacePair>;

// The pairs that a memory plan may use for this node.
PortPairs UsablePairs(const ir::Node& node) {
  PortPairs usable;
  for (const ir::InPlacePair& pair : node.op().in_place) {
    if (pair.input >= node.num_inputs() || pair.output >= node.num_outputs()) continue;
    if (ir::FitsInPlace(node.input_type(pair.input), node.output_type(pair.output))) {
      usable.push_back(pair);
    }
  }
  return usable;
}

// As many as share no input and no output, in order.
PortPairs Together(const PortPairs& pairs) {
  PortPairs together;
  std::set<int> inputs, outputs;
  for (const ir::InPlacePair& pair : pairs) {
    if (inputs.count(pair.input) > 0 || outputs.count(pair.output) > 0) continue;
    inputs.insert(pair.input);
    outputs.insert(pair.output);
    together.push_back(pair);
  }
  return together;
}

ir::ValueType Plain(ir::ValueType type) {
  type.layout = ir::Layout::kPlain;
  return type;
}

// Runs with each pair's output in its input's memory.
std::vector<Tensor> RunOver(kernels::Kernel& kernel, const ir::Node& node,
                            const std::vector<Tensor>& inputs, const PortPairs& pairs) {
  std::vector<Tensor> in, out;
  std::vector<const void*> in_data;
  std::vector<void*> out_data;
  for (int i = 0; i < node.num_inputs(); ++i) {
    in.push_back(Relaid(inputs[i], Plain(node.input_type(i)), node.input_type(i)).Clone());
    in_data.push_back(in.back().raw());
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    out.push_back(Tensor::Zeros(node.output_type(i).dtype, node.output_type(i).shape));
    out_data.push_back(out.back().raw());
  }
  for (const ir::InPlacePair& pair : pairs) out_data[pair.output] = in[pair.input].raw();
  const std::shared_ptr<Buffer> workspace = *Buffer::Allocate(kernel.workspace_bytes());
  kernels::RunState state{kTestRunCount, {}};
  kernel.Run({in_data.data(), out_data.data(), workspace->data(), &state});
  for (const ir::InPlacePair& pair : pairs) {
    std::memcpy(out[pair.output].raw(), in[pair.input].raw(), out[pair.output].num_bytes());
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    out[i] = Relaid(out[i], node.output_type(i), Plain(node.output_type(i)));
  }
  return out;
}

std::string Text(const PortPairs& pairs) {
  std::string text;
  for (const ir::InPlacePair& pair : pairs) text += Concat(" ", pair.input, "->", pair.output);
  return text;
}

// Empty, or the first element that differs.
std::string Difference(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  for (size_t o = 0; o < want.size(); ++o) {
    for (int64_t i = 0; i < want[o].num_elements(); ++i) {
      const double g = got[o].at(i), w = want[o].at(i);
      if (g == w || (std::isnan(g) && std::isnan(w))) continue;
      return Concat("output ", o, ", element ", i, ": ", g, " in place, ", w, " apart");
    }
  }
  return "";
}

void CheckCase(const OpCase& c, DType dtype, ir::Layout layout) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
  const ir::Node& node = *CaseNode(*graph);
  const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
  const PortPairs usable = UsablePairs(node);
  std::vector<PortPairs> choices = {Together(usable)};
  for (const ir::InPlacePair& pair : usable) choices.push_back({pair});
  const auto& registry = KernelRegistry::Global();
  for (const KernelCandidate* candidate : registry.Candidates(c.op, Device::Kind::kCpu)) {
    auto kernel = registry.CreateNamed(node, candidate->name);
    if (!kernel.ok()) continue;
    const auto apart = RunKernel(**kernel, node, inputs);
    ASSERT_TRUE(apart.ok()) << candidate->name << ": " << Message(apart.status());
    for (const PortPairs& pairs : choices) {
      EXPECT_EQ(Difference(RunOver(**kernel, node, inputs, pairs), *apart), "")
          << candidate->name << " on " << c.name << " in " << Name(dtype) << ", pairs"
          << Text(pairs);
    }
  }
}

bool HasPairs(const OpCase& c) { return !ir::OpRegistry::Global().Find(c.op)->in_place.empty(); }

class CaseInPlaceTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CaseInPlaceTest, GivesTheSameValues) {
  for (const OpCase* c : CasesOf(GetParam(), HasPairs)) {
    for (DType dtype : c->dtypes) {
      CheckCase(*c, dtype, ir::Layout::kPlain);
      for (const ir::Layout layout : LayoutsOf(*c)) CheckCase(*c, dtype, layout);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CaseInPlaceTest, ::testing::ValuesIn(OpsWithCases(HasPairs)),
                         OpTestName);

// The check sees a kernel that reads an element after writing over it.
class Reverses : public kernels::Kernel {
 public:
  explicit Reverses(int64_t size) : size_(size) {}
  void Run(const kernels::KernelArgs& args) override {
    const auto* x = static_cast<const float*>(args.inputs[0]);
    auto* y = static_cast<float*>(args.outputs[0]);
    for (int64_t i = 0; i < size_; ++i) y[i] = x[size_ - 1 - i];
  }

 private:
  int64_t size_;
};

TEST(CaseInPlaceCheck, SeesAKernelThatReadsTooLate) {
  const OpCase c = Case("neg", "planted", {Reals({5})});
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF32);
  const ir::Node& node = *CaseNode(*graph);
  const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF32);
  Reverses kernel(5);
  const auto apart = RunKernel(kernel, node, inputs);
  ASSERT_TRUE(apart.ok());
  EXPECT_EQ(Difference(RunOver(kernel, node, inputs, {}), *apart), "");
  EXPECT_NE(Difference(RunOver(kernel, node, inputs, {{0, 0}}), *apart), "");
}

}  // namespace
}  // namespace halftone::testing
