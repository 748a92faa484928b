// Where an op's record allows an output over an input, every CPU kernel must bear it.
#include <gtest/gtest.h>

#include <cstring>

#include "halftone/tests/kernels/cpu_check.h"
#include "halftone/tests/support/run_kernel.h"

namespace halftone::testing {
namespace {

// Output `pair.output` of a run whose storage is that of input `pair.input`, in storage order.
Tensor RunOver(kernels::Kernel& kernel, const ir::Node& node, const std::vector<Tensor>& inputs,
               const ir::InPlacePair& pair) {
  std::vector<Tensor> in, out;
  std::vector<const void*> in_data;
  std::vector<void*> out_data;
  for (int i = 0; i < node.num_inputs(); ++i) {
    ir::ValueType plain = node.input_type(i);
    plain.layout = ir::Layout::kPlain;
    in.push_back(Relaid(inputs[i], plain, node.input_type(i)).Clone());
    in_data.push_back(in.back().raw());
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    out.push_back(Tensor::Empty(node.output_type(i).dtype, node.output_type(i).shape));
    out_data.push_back(i == pair.output ? in[pair.input].raw() : out.back().raw());
  }
  const auto workspace = Buffer::Allocate(kernel.workspace_bytes() + 1);
  kernels::RunState state{kTestRunCount, {}};
  kernel.Run({in_data.data(), out_data.data(), (*workspace)->data(), &state});
  Tensor result = out[pair.output];
  std::memcpy(result.raw(), in[pair.input].raw(), result.num_bytes());
  return result;
}

bool MayShare(const ir::Node& node, const ir::InPlacePair& pair) {
  if (pair.input >= node.num_inputs() || pair.output >= node.num_outputs()) return false;
  const ir::ValueType &x = node.input_type(pair.input), &y = node.output_type(pair.output);
  return x.shape == y.shape && x.layout == y.layout && SizeOf(x.dtype) == SizeOf(y.dtype);
}

// Returns how many runs in place were checked.
int CheckInPlace(const OpCase& c, DType dtype, ir::Layout layout) {
  const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
  const ir::Node& node = *CaseNode(*graph);
  int checked = 0;
  for (const kernels::KernelCandidate* candidate : FastCandidates(c.op)) {
    auto kernel = kernels::KernelRegistry::Global().CreateNamed(node, candidate->name);
    if (!kernel.ok()) continue;
    for (const ir::InPlacePair& pair : node.op().in_place) {
      if (!MayShare(node, pair)) continue;
      const auto apart = RunKernel(**kernel, node, inputs);
      EXPECT_TRUE(apart.ok()) << c.name << ": " << Message(apart.status());
      if (!apart.ok()) continue;
      ir::ValueType plain = node.output_type(pair.output);
      plain.layout = ir::Layout::kPlain;
      const Tensor want = Relaid((*apart)[pair.output], plain, node.output_type(pair.output));
      EXPECT_TRUE(BitEqual(RunOver(**kernel, node, inputs, pair), want))
          << c.name << ": " << candidate->name << " in " << Name(dtype) << ", output "
          << pair.output << " over input " << pair.input;
      ++checked;
    }
  }
  return checked;
}

TEST(CpuInPlace, GivesTheSameBits) {
  int checked = 0;
  for (const OpCase& c : AllOpCases()) {
    for (DType dtype : c.dtypes) {
      checked += CheckInPlace(c, dtype, ir::Layout::kPlain);
      if (c.channels_last) checked += CheckInPlace(c, dtype, ir::Layout::kChannelsLast);
    }
  }
  EXPECT_GT(checked, 200);
}

}  // namespace
}  // namespace halftone::testing
