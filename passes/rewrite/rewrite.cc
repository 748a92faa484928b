#include "halftone/passes/rewrite/rewrite.h"

#include <cmath>

#include "halftone/graph/ir/infer.h"
#include "halftone/graph/ir/text_format.h"

namespace halftone::passes {

bool IsOp(const ir::Node& node, const char* name) { return node.op().name == name; }

bool IsCast(const ir::Node& node) { return IsOp(node, "cast"); }

bool IsSource(const ir::Node& node) {
  return IsOp(node, "input") || IsOp(node, "variable") || IsOp(node, "constant");
}

bool IsRecomputed(const ir::Node& node) { return node.provenance.pass == kRematerialise; }

std::vector<ir::Node*> FindMarkers(const ir::Graph& graph, const char* op) {
  std::vector<ir::Node*> markers;
  for (const auto& node : graph.nodes()) {
    if (IsOp(*node, op)) markers.push_back(node.get());
  }
  return markers;
}

ir::Node* FindMarker(const ir::Graph& graph, const char* op) {
  for (const auto& node : graph.nodes()) {
    if (IsOp(*node, op)) return node.get();
  }
  return nullptr;
}

const Tensor* ConstantValue(ir::Value v) {
  if (!v.valid() || !IsOp(*v.node, "constant")) return nullptr;
  return &v.node->attrs().Get<Tensor>("value");
}

bool IsSplat(ir::Value v, double value) {
  const Tensor* tensor = ConstantValue(v);
  if (tensor == nullptr || tensor->num_elements() == 0) return false;
  // The first element tells nearly always; equal numbers of one dtype have equal bits.
  const double first = tensor->at(0);
  if (first != value || std::signbit(first) != std::signbit(value)) return false;
  return tensor->num_elements() == 1 || ir::IsSplat(*tensor);
}

bool IsLossless(DType from, DType to) {
  if (from == to) return true;
  switch (from) {
    case DType::kF16:
    case DType::kBF16:
      return to == DType::kF32 || to == DType::kF64;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return IsFloat(to) && !IsF8(to);
    case DType::kF32:
      return to == DType::kF64;
    case DType::kBool:
      return true;
    case DType::kU8:  // 255 has eight bits, as many as bf16 keeps
      return to != DType::kBool && !IsF8(to);
    case DType::kI32:
      return to == DType::kI64 || to == DType::kF64;
    case DType::kF64:
    case DType::kI64:
      return false;
  }
  return false;
}

bool Contains(const std::vector<int>& ports, int port) {
  return std::find(ports.begin(), ports.end(), port) != ports.end();
}

std::vector<ir::Node*> Snapshot(const ir::Graph& graph) {
  std::vector<ir::Node*> nodes;
  nodes.reserve(graph.nodes().size());
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  return nodes;
}

ir::Builder BuilderLike(const ir::Node& origin, const char* pass) {
  ir::Builder builder(&origin.graph());
  builder.At(origin.location);
  builder.set_scope(origin.scope());
  builder.set_provenance({pass, origin.name()});
  builder.set_amp_request(origin.amp_request);
  builder.set_recompute(origin.recompute);
  return builder;
}

absl::Status Reinfer(ir::Node& node) {
  std::vector<ir::ValueType> inputs;
  inputs.reserve(node.inputs().size());
  for (ir::Value v : node.inputs()) inputs.push_back(v.type());
  HT_ASSIGN_OR_RETURN(node.mutable_output_types(),
                      ir::InferTypes(node.op(), node.Label(), inputs, node.attrs()));
  return absl::OkStatus();
}

}  // namespace halftone::passes
