#include "halftone/tools/support/peak.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "halftone/graph/ops/support/record.h"
#include "halftone/graph/runtime/compile.h"

namespace halftone::tools {
namespace {

constexpr int kRounds = 8;

// The seconds of the graph's only kernel, at best. The operands are zeros, which take as long.
absl::StatusOr<double> BestSeconds(std::unique_ptr<ir::Graph> graph, const Device& device) {
  runtime::VariableStore store;
  runtime::CompileOptions options;
  options.device = device;
  HT_ASSIGN_OR_RETURN(
      const std::unique_ptr<runtime::Executable> executable,
      runtime::Compile(std::move(graph), options, store, std::make_shared<runtime::Arena>()));
  std::vector<Tensor> tensors;
  const auto addresses = [&tensors](const std::vector<ir::ValueType>& types) {
    std::vector<void*> found;
    for (const ir::ValueType& type : types) {
      tensors.push_back(Tensor::Zeros(type.dtype, type.shape));
      found.push_back(tensors.back().raw());
    }
    return found;
  };
  const std::vector<void*> inputs = addresses(executable->input_types());
  const std::vector<void*> outputs = addresses(executable->output_types());
  double best = 0;
  executable->set_profile([&best](const ir::Node&, const kernels::Kernel&, double seconds) {
    best = best == 0 ? seconds : std::min(best, seconds);
  });
  for (int round = 0; round < kRounds; ++round) {
    HT_RETURN_IF_ERROR(executable->Run(inputs.data(), outputs.data(), 0));
  }
  return best;
}

std::unique_ptr<ir::Graph> Product(DType dtype, int64_t extent) {
  auto graph = std::make_unique<ir::Graph>("product");
  ir::Builder b(graph.get());
  const Shape shape{extent, extent};
  const ir::Expr x = b.Input("x", {dtype, shape}), w = b.Input("w", {dtype, shape});
  graph->outputs().push_back({"y", b.Op("matmul", {x, w}).value()});
  return graph;
}

std::unique_ptr<ir::Graph> Pass(int64_t elements) {
  auto graph = std::make_unique<ir::Graph>("pass");
  ir::Builder b(graph.get());
  const ir::Expr x = b.Input("x", {DType::kF32, Shape{elements}});
  graph->outputs().push_back({"y", b.Op("neg", {x}).value()});
  return graph;
}

// In which the node multiplies.
DType ComputedIn(const ir::Node& node) {
  const DType dtype = node.num_inputs() > 0 ? node.input_type(0).dtype : DType::kF32;
  return ops::IsWidened(node) ? DType::kF32 : dtype;
}

}  // namespace

double Peak::Share(const ir::Node& node, double seconds) const {
  if (seconds <= 0) return 0;
  const ir::Cost cost = ir::CostOf(node);
  const auto rate = flops.find(ComputedIn(node));
  const double arithmetic = rate == flops.end() ? 0 : cost.flops / seconds / rate->second;
  return std::max(arithmetic, bytes == 0 ? 0 : cost.bytes / seconds / bytes);
}

absl::StatusOr<Peak> MeasurePeak(const Device& device) {
  constexpr int64_t kExtent = 1024, kElements = int64_t{16} << 20;
  Peak peak;
  if (device.kind == Device::Kind::kReference)
    return peak;  // not for speed, and it would take minutes
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    HT_ASSIGN_OR_RETURN(const double seconds, BestSeconds(Product(dtype, kExtent), device));
    peak.flops[dtype] = 2.0 * kExtent * kExtent * kExtent / seconds;
  }
  HT_ASSIGN_OR_RETURN(const double seconds, BestSeconds(Pass(kElements), device));
  peak.bytes = 8.0 * kElements / seconds;
  return peak;
}

}  // namespace halftone::tools
