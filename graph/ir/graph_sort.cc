#include <unordered_map>

#include "halftone/core/check.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::ir {

// Inputs first, which are told apart by their order. Then depth first over operands, roots in the order
// that exists: a node already placed stays where it is, one that is needed earlier moves directly before
// its first user. The stack is explicit, since a chain may be as long as the graph.
absl::Status Graph::Sort() {
  enum class State : uint8_t { kUnseen, kOpen, kDone };
  struct Frame {
    size_t node;
    int next_input;
  };
  std::unordered_map<const Node*, size_t> index;
  for (size_t i = 0; i < nodes_.size(); ++i) index[nodes_[i].get()] = i;
  std::vector<State> state(nodes_.size(), State::kUnseen);
  std::vector<size_t> order;
  order.reserve(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i]->op().name != "input") continue;
    state[i] = State::kDone;
    order.push_back(i);
  }
  std::vector<Frame> stack;

  for (size_t root = 0; root < nodes_.size(); ++root) {
    if (state[root] != State::kUnseen) continue;
    state[root] = State::kOpen;
    stack.push_back({root, 0});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const Node& node = *nodes_[frame.node];
      if (frame.next_input == node.num_inputs()) {
        state[frame.node] = State::kDone;
        order.push_back(frame.node);
        stack.pop_back();
        continue;
      }
      const Value input = node.input(frame.next_input++);
      const auto it = index.find(input.node);
      if (it == index.end()) {
        return Internal(node.Label(), ": an input is not a node of this graph");
      }
      if (state[it->second] == State::kOpen) {
        return Internal(node.Label(), ": the graph has a cycle through ", input.ToString());
      }
      if (state[it->second] == State::kUnseen) {
        state[it->second] = State::kOpen;
        stack.push_back({it->second, 0});  // `frame` dangles from here
      }
    }
  }
  std::vector<std::unique_ptr<Node>> sorted;
  sorted.reserve(nodes_.size());
  for (size_t i : order) sorted.push_back(std::move(nodes_[i]));
  nodes_ = std::move(sorted);
  return absl::OkStatus();
}

void Graph::Reorder(const std::vector<Node*>& order) {
  std::unordered_map<const Node*, std::unique_ptr<Node>> owned;
  for (std::unique_ptr<Node>& node : nodes_) {
    const Node* const key = node.get();
    owned.emplace(key, std::move(node));
  }
  nodes_.clear();
  for (const Node* node : order) {
    const auto it = owned.find(node);
    HT_CHECK(it != owned.end() && it->second != nullptr, "a node that is not there, or twice");
    nodes_.push_back(std::move(it->second));
  }
  HT_CHECK(nodes_.size() == owned.size(), "nodes that the order leaves out");
}

}  // namespace halftone::ir
