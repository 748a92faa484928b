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

// The seconds of the kernel of the graph's output at best, without what orders its operands for it. They
// are zeros, which take as long.
absl::StatusOr<double> BestSeconds(std::unique_ptr<ir::Graph> graph, const Device& device) {
  const std::string op = graph->outputs()[0].value.node->op().name;
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
  executable->set_profile([&](const ir::Node& node, const kernels::Kernel&, double seconds) {
    if (node.op().name == op) best = best == 0 ? seconds : std::min(best, seconds);
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

struct Convolution {
  static constexpr int64_t kBatch = 8, kChannels = 256, kExtent = 28, kKernel = 3;
  static constexpr double kFlops =
      2.0 * kBatch * kExtent * kExtent * kChannels * kChannels * kKernel * kKernel;

  static std::unique_ptr<ir::Graph> Graph(DType dtype) {
    auto graph = std::make_unique<ir::Graph>("convolution");
    ir::Builder b(graph.get());
    const ir::Expr x = b.Input("x", {dtype, Shape{kBatch, kChannels, kExtent, kExtent}});
    const ir::Expr w = b.Input("w", {dtype, Shape{kChannels, kChannels, kKernel, kKernel}});
    const ir::Expr y = b.Op("conv2d", {x, w}, {{"padding", std::vector<int64_t>{1, 1}}});
    graph->outputs().push_back({"y", y.value()});
    return graph;
  }
};

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

double Peak::ArithmeticSeconds(const ir::Node& node) const {
  const auto rate = flops.find(ComputedIn(node));
  return rate == flops.end() ? 0 : ir::CostOf(node).flops / rate->second;
}

double Peak::Share(const ir::Node& node, double seconds) const {
  if (seconds <= 0) return 0;
  const double memory = bytes == 0 ? 0 : ir::CostOf(node).bytes / bytes;
  return std::max(ArithmeticSeconds(node), memory) / seconds;
}

absl::StatusOr<Peak> MeasurePeak(const Device& device) {
  constexpr int64_t kExtent = 1024, kElements = int64_t{16} << 20;
  Peak peak;
  if (device.kind == Device::Kind::kReference)
    return peak;  // not for speed, and it would take minutes
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    HT_ASSIGN_OR_RETURN(const double product, BestSeconds(Product(dtype, kExtent), device));
    HT_ASSIGN_OR_RETURN(const double convolution, BestSeconds(Convolution::Graph(dtype), device));
    peak.flops[dtype] =
        std::max(2.0 * kExtent * kExtent * kExtent / product, Convolution::kFlops / convolution);
  }
  HT_ASSIGN_OR_RETURN(const double seconds, BestSeconds(Pass(kElements), device));
  peak.bytes = 8.0 * kElements / seconds;
  return peak;
}

}  // namespace halftone::tools
