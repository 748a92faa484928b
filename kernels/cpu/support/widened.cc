#include "halftone/kernels/cpu/support/widened.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "halftone/core/align.h"
#include "halftone/kernels/cpu/simd/convert.h"

namespace halftone::kernels {
namespace {

// The same node over f32: one op over inputs, in a graph of its own.
absl::StatusOr<const ir::Node*> WidenNode(const ir::Node& node, ir::Graph& graph) {
  const auto widen = [](ir::ValueType type) {
    if (IsLow(type.dtype)) type.dtype = DType::kF32;
    return type;
  };
  const ir::OpRecord* input = ir::OpRegistry::Global().Find("input");
  HT_CHECK(input != nullptr);
  std::vector<ir::Value> inputs;
  for (const ir::Value& v : node.inputs()) {
    inputs.push_back(graph.AddNode(input, {}, {}, {widen(v.type())}, "x", "")->output());
  }
  std::vector<ir::ValueType> outputs;
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(widen(node.output_type(i)));
  return graph.AddNode(&node.op(), inputs, node.attrs(), outputs, node.name(), "");
}

class WidenedKernel : public Kernel {
 public:
  struct Port {
    DType dtype;  // in the graph
    int64_t elements;
    bool widened;
    size_t offset;  // of the f32 copy in the workspace
  };

  WidenedKernel(const ir::Node& node, std::unique_ptr<Kernel> inner) : inner_(std::move(inner)) {
    for (const ir::Value& v : node.inputs()) inputs_.push_back(MakePort(v.type()));
    for (int i = 0; i < node.num_outputs(); ++i) outputs_.push_back(MakePort(node.output_type(i)));
    inner_workspace_ = workspace_bytes_;
    workspace_bytes_ += AlignUp(inner_->workspace_bytes(), kBufferAlignment);
    if (inner_->packing().bytes > 0) {
      const Port& port = inputs_[1];
      packing_ = inner_->packing();
      // Another value than that of the variable itself in f32.
      packing_.format += Concat(" widened from ", Name(port.dtype));
    }
    implementation_ = inner_->name() + "/" + inner_->implementation();
    wide_inputs_.resize(inputs_.size());
    wide_outputs_.resize(outputs_.size());
  }

  // What is held is made of the operand's copy in f32.
  void Pack(const KernelArgs& args, void* packed) override {
    const Port& port = inputs_[1];
    char* const workspace = static_cast<char*>(args.workspace);
    const void* inputs[] = {nullptr, args.inputs[1]};
    if (port.widened) {
      inputs[1] = workspace + port.offset;
      Convert(args.inputs[1], port.dtype, workspace + port.offset, DType::kF32, port.elements);
    }
    inner_->Pack({inputs, nullptr, workspace + inner_workspace_, args.state}, packed);
  }

  void Run(const KernelArgs& args) override {
    char* workspace = static_cast<char*>(args.workspace);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Port& port = inputs_[i];
      wide_inputs_[i] = args.inputs[i];
      if (!port.widened || (i == 1 && args.packed != nullptr)) continue;
      Convert(args.inputs[i], port.dtype, workspace + port.offset, DType::kF32, port.elements);
      wide_inputs_[i] = workspace + port.offset;
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      wide_outputs_[i] = outputs_[i].widened ? workspace + outputs_[i].offset : args.outputs[i];
    }
    KernelArgs inner{wide_inputs_.data(), wide_outputs_.data(), workspace + inner_workspace_,
                     args.state};
    inner.packed = args.packed;
    inner_->Run(inner);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Port& port = outputs_[i];
      if (port.widened)
        Convert(wide_outputs_[i], DType::kF32, args.outputs[i], port.dtype, port.elements);
    }
  }

 private:
  Port MakePort(const ir::ValueType& type) {
    Port port{type.dtype, type.num_elements(), IsLow(type.dtype), workspace_bytes_};
    if (port.widened) workspace_bytes_ += AlignUp(port.elements * sizeof(float), kBufferAlignment);
    return port;
  }
  std::unique_ptr<Kernel> inner_;
  std::vector<Port> inputs_, outputs_;
  size_t inner_workspace_ = 0;
  std::vector<const void*> wide_inputs_;
  std::vector<void*> wide_outputs_;
};

// Calls take(node over f32, name) for each f32 kernel that accepts it, until one is OK.
using Take = std::function<absl::Status(const ir::Node& wide, const std::string& name)>;

absl::Status FindF32Kernel(const KernelRegistry& r, const std::string& op, const ir::Node& node,
                           const Take& take) {
  ir::Graph graph("widened");
  HT_ASSIGN_OR_RETURN(const ir::Node* wide, WidenNode(node, graph));
  std::string refusals;
  for (const KernelCandidate* candidate : r.Candidates(op, Device::Kind::kCpu)) {
    if (candidate->tier == KernelTier::kReference || !candidate->dtypes.Contains(DType::kF32))
      continue;
    absl::Status refusal = candidate->Accepts(*wide);
    if (refusal.ok()) refusal = take(*wide, candidate->name);
    if (refusal.ok() || absl::IsResourceExhausted(refusal)) return refusal;
    refusals += " " + Message(refusal);
  }
  return Unimplemented("no f32 kernel to widen to:", refusals);
}

absl::Status CheckWidening(const KernelRegistry& r, const std::string& op, const ir::Node& node) {
  if (std::none_of(node.inputs().begin(), node.inputs().end(),
                   [](const ir::Value& v) { return IsLow(v.dtype()); })) {
    return Unimplemented("no 16-bit operand");
  }
  return FindF32Kernel(r, op, node, [](const auto&, const auto&) { return absl::OkStatus(); });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateWidened(const KernelRegistry& r,
                                                      const std::string& op, const ir::Node& node) {
  std::unique_ptr<Kernel> widened;
  HT_RETURN_IF_ERROR(FindF32Kernel(
      r, op, node, [&](const ir::Node& wide, const std::string& name) -> absl::Status {
        HT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, r.CreateNamed(wide, name));
        widened = std::make_unique<WidenedKernel>(node, std::move(kernel));
        return absl::OkStatus();
      }));
  return widened;
}

}  // namespace

void AddWidened(KernelRegistry& r, const std::string& op) {
  KernelCandidate candidate;
  candidate.name = "cpu:widened:" + op;
  candidate.op = op;
  candidate.tier = KernelTier::kFallback;
  candidate.dtypes = {DType::kF16, DType::kBF16};
  candidate.widens = true;
  candidate.supports = [&r, op](const ir::Node& node) { return CheckWidening(r, op, node); };
  candidate.create = [&r, op](const ir::Node& node) { return CreateWidened(r, op, node); };
  r.Add(std::move(candidate));
}

}  // namespace halftone::kernels
