// The gradient of every op against central differences, in f64, over all case tables.

#include <gtest/gtest.h>

#include <algorithm>

#include "halftone/core/philox.h"
#include "halftone/tests/support/adjoints.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"

namespace halftone::testing {
namespace {

// The difference of fourth order over points h and 2h away has an error of h^4 f''''' / 30, about
// 1e-17 here; rounding adds about 1e-15 / h = 1e-11.
constexpr double kStep = 1e-4;
constexpr double kLargestError = 1e-6;
// Elements probed per input; of larger inputs, evenly spread ones.
constexpr int64_t kProbes = 48;

std::vector<int> GradientOutputs(const OpCase& c, const ir::Node& node) {
  if (!c.gradient_outputs.empty()) return c.gradient_outputs;
  std::vector<int> outputs;
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (IsFloat(node.output_type(i).dtype)) outputs.push_back(i);
  }
  return outputs;
}

Tensor RandomWeights(const Shape& shape, uint64_t seed) {
  PhiloxStream random(seed);
  Tensor t = Tensor::Empty(DType::kF64, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.set(i, 0.5 + random.Uniform());
  return t;
}

// The loss: each output that takes part, times random weights, summed.
class WeightedLoss {
 public:
  WeightedLoss(const OpCase& c, const ir::Node& node) : node_(node) {
    for (int output : GradientOutputs(c, node)) {
      weights_.emplace_back(output, RandomWeights(node.output_type(output).shape, output + 1));
    }
    auto kernel = kernels::KernelRegistry::Global().Select(node, Device::Kind::kReference);
    HT_CHECK(kernel.ok(), "a reference kernel");
    kernel_ = *std::move(kernel);
    for (int i = 0; i < node.num_outputs(); ++i) {
      outputs_.push_back(Tensor::Empty(node.output_type(i).dtype, node.output_type(i).shape));
    }
    workspace_ = *Buffer::Allocate(kernel_->workspace_bytes());
  }
  const std::vector<std::pair<int, Tensor>>& weights() const { return weights_; }

  double At(const std::vector<Tensor>& inputs) const {
    std::vector<const void*> input_data;
    std::vector<void*> output_data;
    for (const Tensor& t : inputs) input_data.push_back(t.raw());
    for (const Tensor& t : outputs_) output_data.push_back(t.raw());
    kernels::RunState state{kTestRunCount, {}};
    kernel_->Run({input_data.data(), output_data.data(), workspace_->data(), &state});
    double loss = 0;
    for (const auto& [output, weights] : weights_) {
      const Tensor y = Plain(output);
      for (int64_t i = 0; i < weights.num_elements(); ++i) loss += weights.at(i) * y.at(i);
    }
    return loss;
  }

  // The derivative with respect to element `i` of input `port`.
  double Slope(const std::vector<Tensor>& inputs, int port, int64_t i) const {
    std::vector<Tensor> moved = inputs;
    moved[port] = inputs[port].Clone();
    const double x = inputs[port].at(i);
    const auto at = [&](double offset) {
      moved[port].set(i, x + offset);
      return At(moved);
    };
    return (8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12 * kStep);
  }

 private:
  Tensor Plain(int output) const {
    const ir::ValueType& type = node_.output_type(output);
    return Relaid(outputs_[output], type, {type.dtype, type.shape});
  }

  const ir::Node& node_;
  std::vector<std::pair<int, Tensor>> weights_;
  std::unique_ptr<kernels::Kernel> kernel_;
  std::vector<Tensor> outputs_;
  std::shared_ptr<Buffer> workspace_;
};

// Ops that the lambda emitted but the record does not declare.
std::string Undeclared(const ir::OpRecord& op, const ir::Graph& graph, size_t first) {
  std::string missing;
  for (size_t n = first; n < graph.nodes().size(); ++n) {
    const std::string& name = graph.nodes()[n]->op().name;
    const auto& declared = op.gradient_ops;
    const bool known = std::find(declared.begin(), declared.end(), name) != declared.end();
    if (name != "constant" && !known) missing += name + " ";
  }
  return missing;
}

// Compares one input's adjoint with differences; elements far below the largest are held to the
// absolute error that this allows.
void CompareSlopes(const WeightedLoss& loss, const std::vector<Tensor>& inputs, int port,
                   const Tensor& adjoint) {
  const int64_t count = adjoint.num_elements();
  const int64_t stride = std::max<int64_t>(1, (count + kProbes - 1) / kProbes);
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(adjoint.at(i)));
  for (int64_t i = 0; i < count; i += stride) {
    const double got = adjoint.at(i), expected = loss.Slope(inputs, port, i);
    const double scale = std::max({std::abs(expected), std::abs(got), 1e-2 * largest, 1e-6});
    EXPECT_LE(std::abs(got - expected) / scale, kLargestError)
        << "input " << port << ", element " << i << ": gradient " << got << ", difference "
        << expected;
  }
}

void CheckGradient(const OpCase& c) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF64);
  ir::Node& node = *CaseNode(*graph);
  const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF64);
  const WeightedLoss loss(c, node);

  ir::Builder b(graph.get());
  std::vector<ir::Expr> dys(node.num_outputs());
  for (const auto& [output, weights] : loss.weights()) dys[output] = b.Constant(weights);
  const size_t first = graph->nodes().size();
  const std::vector<ir::Expr> adjoints = AdjointsOf(b, node, dys);
  ASSERT_TRUE(b.status().ok()) << Message(b.status());
  if (node.op().gradient) {
    EXPECT_EQ(Undeclared(node.op(), *graph, first), "") << "not in gradient_ops of " << c.op;
  }
  const auto values = GraphValues::Evaluate(*graph, inputs);
  ASSERT_TRUE(values.ok()) << Message(values.status());

  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!c.inputs[i].differentiable || !IsFloat(node.input_type(i).dtype)) continue;
    ASSERT_TRUE(adjoints[i].valid()) << "no gradient for input " << i;
    ASSERT_EQ(adjoints[i].type(), node.input_type(i)) << "of input " << i;
    CompareSlopes(loss, inputs, i, values->at(adjoints[i].value()));
  }
}

bool IsDifferentiable(const OpCase& c) { return c.gradient; }

class CaseGradientTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CaseGradientTest, AgreesWithCentralDifferences) {
  for (const OpCase* c : CasesOf(GetParam(), IsDifferentiable)) {
    SCOPED_TRACE(c->name);
    CheckGradient(*c);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CaseGradientTest, ::testing::ValuesIn(OpsWithCases(IsDifferentiable)),
                         OpTestName);

// The check sees a formula that is wrong in one factor.
TEST(CaseGradientCheck, SeesAWrongSlope) {
  const OpCase c = Case("exp", "planted", {Reals({4})});
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF64);
  const ir::Node& node = *CaseNode(*graph);
  const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF64);
  const WeightedLoss loss(c, node);
  const double slope = loss.Slope(inputs, 0, 2);
  const double right = loss.weights()[0].second.at(2) * std::exp(inputs[0].at(2));
  EXPECT_LT(std::abs(slope / right - 1), kLargestError);
  EXPECT_GT(std::abs(slope / (right * 1.00001) - 1), kLargestError);
}

}  // namespace
}  // namespace halftone::testing
