#include "halftone/passes/amp/island_cost.h"

#include <algorithm>

namespace halftone::passes {
namespace {

bool IsLowVertex(const AmpVertex& vertex) {
  return vertex.node->amp.decided && IsLow(vertex.node->amp.dtype);
}

bool MayTrim(const AmpVertex& vertex) {
  const ir::AmpClass amp_class = vertex.choice.amp_class;
  return vertex.role == AmpRole::kPaintable && IsLowVertex(vertex) && !vertex.choice.forced &&
         (amp_class == ir::AmpClass::kInfer || amp_class == ir::AmpClass::kClear);
}

// Main values that `v` reads, with the vertex of each producer.
std::vector<std::pair<int, ir::Value>> MainValues(const AmpGraph& graph, int v) {
  std::vector<std::pair<int, ir::Value>> values;
  const AmpVertex& vertex = graph[v];
  for (size_t port = 0; port < vertex.producers.size(); ++port) {
    if (vertex.producers[port] == AmpGraph::kNotMain) continue;
    ir::Value value = LookThroughAmpCasts(vertex.node->input(static_cast<int>(port)));
    values.emplace_back(vertex.producers[port], value);
  }
  return values;
}

bool Reads(const AmpGraph& graph, int v, ir::Value value) {
  for (const auto& [producer, read] : MainValues(graph, v)) {
    if (read == value) return true;
  }
  return false;
}

// Whether a 16-bit vertex outside the island, or an f32 one, reads `value` too.
bool ReadOutside(const AmpGraph& graph, int producer, ir::Value value, const std::set<int>& island,
                 bool low) {
  if (producer < 0) return false;
  return std::any_of(graph[producer].users.begin(), graph[producer].users.end(), [&](int user) {
    return !island.count(user) && IsLowVertex(graph[user]) == low && Reads(graph, user, value);
  });
}

}  // namespace

double CastBytes(const ir::ValueType& type) {
  return static_cast<double>(type.num_elements()) * (SizeOf(DType::kF32) + SizeOf(DType::kF16));
}

double SavedBytes(const ir::Node& node) {
  double main = 0, all = 0;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const double bytes = static_cast<double>(node.input_type(i).num_bytes());
    all += bytes;
    if (IsMainInput(node, i) && IsLow(node.input_type(i).dtype)) main += bytes;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    const double bytes = static_cast<double>(node.output_type(i).num_bytes());
    all += bytes;
    if (IsMainOutput(node, i) && IsLow(node.output_type(i).dtype)) main += bytes;
  }
  if (all == 0) return 0;
  const double moved = node.op().cost ? node.op().cost(node).bytes : all;
  return moved * main / all;  // f32 moves twice the main part
}

std::vector<std::vector<int>> FindIslands(const AmpGraph& graph) {
  std::vector<bool> seen(graph.size(), false);
  std::vector<std::vector<int>> islands;
  for (int start = 0; start < graph.size(); ++start) {
    if (seen[start] || !MayTrim(graph[start])) continue;
    std::vector<int> island, stack = {start};
    seen[start] = true;
    while (!stack.empty()) {
      int v = stack.back();
      stack.pop_back();
      island.push_back(v);
      std::vector<int> neighbours = graph.MainProducers(v);
      neighbours.insert(neighbours.end(), graph[v].users.begin(), graph[v].users.end());
      for (int w : neighbours) {
        if (w < 0 || seen[w] || !MayTrim(graph[w])) continue;
        seen[w] = true;
        stack.push_back(w);
      }
    }
    std::sort(island.begin(), island.end());
    islands.push_back(std::move(island));
  }
  return islands;
}

IslandCost CostOfIsland(const AmpGraph& graph, const std::vector<int>& island) {
  const std::set<int> inside(island.begin(), island.end());
  IslandCost cost;
  std::set<std::pair<int64_t, int>> counted;
  for (int v : island) {
    cost.saved += SavedBytes(*graph[v].node);
    for (const auto& [producer, value] : MainValues(graph, v)) {
      if (inside.count(producer) || IsConstant(*value.node)) continue;
      if (!counted.insert({value.node->id(), value.index}).second) continue;
      const bool is_low = producer >= 0 && IsLowVertex(graph[producer]);
      if (is_low) {
        const bool cast_anyway = graph[producer].has_f32_user ||
                                 ReadOutside(graph, producer, value, inside, /*low=*/false);
        if (!cast_anyway) cost.f32_casts += CastBytes(value.type());
      } else if (!ReadOutside(graph, producer, value, inside, /*low=*/true)) {
        cost.low_casts += CastBytes(value.type());
      }
    }
    for (int i = 0; i < graph[v].node->num_outputs(); ++i) {
      if (!IsMainOutput(*graph[v].node, i)) continue;
      const ir::Value value = graph[v].node->output(i);
      if (graph[v].has_f32_user || ReadOutside(graph, v, value, inside, /*low=*/false)) {
        cost.low_casts += CastBytes(value.type());
      }
      if (ReadOutside(graph, v, value, inside, /*low=*/true)) {
        cost.f32_casts += CastBytes(value.type());
      }
    }
  }
  return cost;
}

}  // namespace halftone::passes
