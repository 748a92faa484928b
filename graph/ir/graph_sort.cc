#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "halftone/core/check.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::ir {

namespace {

using Nodes = std::vector<std::unique_ptr<Node>>;
constexpr size_t kNone = static_cast<size_t>(-1);

// By node, the exchange with other ranks that stands before it, of one that is an exchange itself.
std::vector<size_t> ExchangesBefore(const Nodes& nodes) {
  std::vector<size_t> before(nodes.size(), kNone);
  size_t last = kNone;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->op().communicates) before[i] = std::exchange(last, i);
  }
  return before;
}

// Inputs first, which are told apart by their order. Then depth first over operands, roots in the order
// that exists: a node already placed stays where it is, one that is needed earlier moves directly before
// its first user. `before`: for each node one more that it comes behind, or kNone. The stack is explicit, since a
// chain may be as long as the graph.
absl::StatusOr<std::vector<size_t>> SortedOrder(const Nodes& nodes,
                                                const std::vector<size_t>& before) {
  enum class State : uint8_t { kUnseen, kOpen, kDone };
  struct Frame {
    size_t node;
    int next_input;  // -1: the node of `before`
  };
  std::unordered_map<const Node*, size_t> index;
  for (size_t i = 0; i < nodes.size(); ++i) index[nodes[i].get()] = i;
  std::vector<State> state(nodes.size(), State::kUnseen);
  std::vector<size_t> order;
  order.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->op().name != "input") continue;
    state[i] = State::kDone;
    order.push_back(i);
  }
  std::vector<Frame> stack;

  for (size_t root = 0; root < nodes.size(); ++root) {
    if (state[root] != State::kUnseen) continue;
    state[root] = State::kOpen;
    stack.push_back({root, -1});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const Node& node = *nodes[frame.node];
      if (frame.next_input == node.num_inputs()) {
        state[frame.node] = State::kDone;
        order.push_back(frame.node);
        stack.pop_back();
        continue;
      }
      const int input = frame.next_input++;
      size_t needed = before[frame.node];
      if (input >= 0) {
        const auto it = index.find(node.input(input).node);
        if (it == index.end()) {
          return Internal(node.Label(), ": an input is not a node of this graph");
        }
        needed = it->second;
      }
      if (needed == kNone) continue;
      if (state[needed] == State::kOpen) {
        return Internal(node.Label(), ": the graph has a cycle through ",
                        input < 0 ? nodes[needed]->Label() : node.input(input).ToString());
      }
      if (state[needed] == State::kUnseen) {
        state[needed] = State::kOpen;
        stack.push_back({needed, -1});  // `frame` dangles from here
      }
    }
  }
  return order;
}

}  // namespace

// Exchanges keep their order where operands allow it, so that ranks whose graphs differ in what is between
// them make the same ones in the same order.
absl::Status Graph::Sort() {
  absl::StatusOr<std::vector<size_t>> order = SortedOrder(nodes_, ExchangesBefore(nodes_));
  if (!order.ok()) order = SortedOrder(nodes_, std::vector<size_t>(nodes_.size(), kNone));
  HT_RETURN_IF_ERROR(order.status());
  std::vector<std::unique_ptr<Node>> sorted;
  sorted.reserve(nodes_.size());
  for (size_t i : *order) sorted.push_back(std::move(nodes_[i]));
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
