#include "halftone/passes/amp/amp_graph.h"

#include <algorithm>
#include <numeric>

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

// The cast through which a step reads a variable that is kept in 16 bits, or rows of it.
bool IsWidenedVariable(const ir::Node& node) {
  if (!IsCast(node) || !IsLow(node.input_type(0).dtype)) return false;
  if (node.output_type().dtype != DType::kF32) return false;
  const ir::Node& read = *node.input(0).node;
  return IsOp(read, "variable") ||
         (read.op().amp.cast_output_only && IsOp(*read.input(0).node, "variable"));
}

}  // namespace

bool IsConstant(const ir::Node& node) { return node.op().name == "constant"; }
bool IsVariable(const ir::Node& node) { return IsOp(node, "variable") || IsWidenedVariable(node); }
bool IsAmpCast(const ir::Node& node) { return IsCast(node) && node.provenance.pass == kAmpPass; }

ir::Value LookThroughAmpCasts(ir::Value value) {
  while (IsAmpCast(*value.node)) value = value.node->input(0);
  return value;
}

bool IsMainInput(const ir::Node& node, int port) {
  return IsFloat(node.input_type(port).dtype) && !Contains(node.op().amp.keep_f32_inputs, port);
}

bool IsMainOutput(const ir::Node& node, int port) {
  return IsFloat(node.output_type(port).dtype) && !Contains(node.op().amp.keep_f32_outputs, port);
}

bool IsGradientMarker(const ir::Node& node) { return node.op().name == "gradient"; }

bool IsLoweredValue(ir::Value value) {
  // A gradient has the dtype of what it is a gradient of, unless it was scaled.
  if (IsGradientMarker(*value.node) && value.node->attrs().GetString("scaler").empty()) {
    return IsLoweredValue(value.node->input(value.index + 1));
  }
  const ir::AmpDecision& amp = value.node->amp;
  return amp.decided && IsLow(amp.dtype) && value.dtype() == amp.dtype &&
         IsMainOutput(*value.node, value.index);
}

bool IsRaised(const ir::Node& node) { return node.amp.raised_from.has_value(); }

std::optional<DType> RaisedFrom(ir::Value value) {
  const ir::Node& node = *value.node;
  if (IsGradientMarker(node) && node.attrs().GetString("scaler").empty()) {
    return RaisedFrom(node.input(value.index + 1));
  }
  const bool raised = value.dtype() == DType::kF32 && IsMainOutput(node, value.index);
  return raised ? node.amp.raised_from : std::nullopt;
}

DType LogicalDType(ir::Value value) {
  value = LookThroughAmpCasts(value);
  if (IsLoweredValue(value)) return DType::kF32;
  return RaisedFrom(value).value_or(value.dtype());
}

std::vector<int> SameDTypePorts(const ir::Node& node) {
  const ir::AmpTrait& trait = node.op().amp;
  std::vector<int> ports;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if ((trait.all_inputs_share || Contains(trait.same_dtype_inputs, i)) && IsMainInput(node, i)) {
      ports.push_back(i);
    }
  }
  return ports;
}

AmpGraph::AmpGraph(ir::Graph& graph, const std::map<int64_t, amp::ClassChoice>& classes) {
  for (const auto& node : graph.nodes()) {
    if (IsAmpCast(*node)) continue;
    AmpVertex vertex;
    vertex.node = node.get();
    if (auto it = classes.find(node->id()); it != classes.end()) vertex.choice = it->second;
    vertex.role = RoleOf(vertex);
    index_[node->id()] = size();
    vertices_.push_back(std::move(vertex));
  }
  for (int v = 0; v < size(); ++v) {
    for (int port = 0; port < vertices_[v].node->num_inputs(); ++port) ConnectInput(v, port);
  }
  for (const ir::Output& output : graph.outputs()) {
    ir::Value value = LookThroughAmpCasts(output.value);
    if (IsMainOutput(*value.node, value.index)) {
      vertices_[IndexOf(*value.node)].has_f32_user = true;
    }
  }
  for (AmpVertex& vertex : vertices_) {
    std::sort(vertex.users.begin(), vertex.users.end());
    vertex.users.erase(std::unique(vertex.users.begin(), vertex.users.end()), vertex.users.end());
  }
  by_name_.resize(vertices_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0);
  std::sort(by_name_.begin(), by_name_.end(), [this](int a, int b) { return name(a) < name(b); });
}

AmpRole AmpGraph::RoleOf(AmpVertex& vertex) {
  const ir::Node& node = *vertex.node;
  if (IsWidenedVariable(node)) return AmpRole::kSource;
  if (node.op().is_marker || node.op().has_side_effect || IsCast(node)) return AmpRole::kOpaque;
  const bool raises = vertex.choice.forced && vertex.choice.amp_class == ir::AmpClass::kDeny;
  std::optional<DType> raised;
  int inputs = 0, outputs = 0, kept_outputs = 0;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!IsMainInput(node, i)) continue;
    const DType dtype = LogicalDType(node.input(i));
    if (dtype != DType::kF32 && !(raises && IsLow(dtype))) return AmpRole::kOpaque;
    if (dtype != DType::kF32 && !raised) raised = dtype;
    ++inputs;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (!IsMainOutput(node, i)) {
      kept_outputs += IsFloat(node.output_type(i).dtype);
      continue;
    }
    if (!raised && LogicalDType(node.output(i)) != DType::kF32) return AmpRole::kOpaque;
    ++outputs;
  }
  if (raised) {
    if (outputs == 0) return AmpRole::kOpaque;
    vertex.raised_from = raised;
    return AmpRole::kPaintable;
  }
  if (node.op().amp.cast_output_only) inputs = 0;
  if (inputs == 0) return outputs > 0 ? AmpRole::kSource : AmpRole::kOpaque;
  return outputs + kept_outputs > 0 ? AmpRole::kPaintable : AmpRole::kObserver;
}

void AmpGraph::ConnectInput(int v, int port) {
  AmpVertex& vertex = vertices_[v];
  ir::Value value = LookThroughAmpCasts(vertex.node->input(port));
  const int producer = IndexOf(*value.node);
  const bool value_is_main = IsMainOutput(*value.node, value.index);
  const bool reader_paints =
      vertex.role == AmpRole::kPaintable || vertex.role == AmpRole::kObserver;
  const bool main = reader_paints && IsMainInput(*vertex.node, port);
  if (!main) {
    vertex.producers.push_back(kNotMain);
    if (value_is_main) vertices_[producer].has_f32_user = true;
    return;
  }
  const AmpRole from = vertices_[producer].role;
  const bool paints = from == AmpRole::kPaintable || from == AmpRole::kSource;
  vertex.producers.push_back(paints && value_is_main ? producer : kFixedF32);
  if (paints && value_is_main) vertices_[producer].users.push_back(v);
}

int AmpGraph::IndexOf(const ir::Node& node) const {
  auto it = index_.find(node.id());
  return it == index_.end() ? -1 : it->second;
}

std::vector<int> AmpGraph::MainProducers(int v) const {
  std::vector<int> result;
  for (int producer : vertices_[v].producers) {
    if (producer != kNotMain) result.push_back(producer);
  }
  return result;
}

}  // namespace halftone::passes
