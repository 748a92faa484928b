// Storage of a graph: nodes, variables, names.
#include "halftone/graph/ir/graph.h"

#include <unordered_map>
#include <unordered_set>

#include "halftone/core/check.h"
#include "halftone/graph/ir/limits.h"

namespace halftone::ir {
namespace {

std::vector<Node*> NodesOfOp(const std::vector<std::unique_ptr<Node>>& nodes, const char* op) {
  std::vector<Node*> found;
  for (const auto& node : nodes) {
    if (node->op().name == op) found.push_back(node.get());
  }
  return found;
}

Node* FindIn(const std::unordered_map<std::string, Node*>& nodes, const std::string& name) {
  const auto it = nodes.find(name);
  return it == nodes.end() ? nullptr : it->second;
}

// The variable that a `variable` node reads or a commit writes. A broken graph may lack it.
std::string VariableOf(const Node& node) {
  const AttrValue* name = node.attrs().Find(node.op().name == "commit" ? "variable" : "name");
  const auto* text = name == nullptr ? nullptr : std::get_if<std::string>(name);
  return text == nullptr ? "" : *text;
}

}  // namespace

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

bool IsValidName(const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  for (char c : name) {
    if (!IsNameChar(c)) return false;
  }
  return true;
}

std::unique_ptr<Graph> Graph::Clone() const {
  auto copy = std::make_unique<Graph>(name_);
  std::unordered_map<const Node*, Node*> map;
  const auto mapped = [&map](Value v) {
    return v.valid() ? Value{map.at(v.node), v.index} : Value{};
  };
  // All nodes before any input: a graph in the middle of a pass need not be in order.
  for (const auto& node : nodes_) {
    auto& made = copy->nodes_.emplace_back(std::make_unique<Node>(*node));
    made->graph_ = copy.get();
    map[node.get()] = made.get();
    copy->by_name_[made->name_] = made.get();
  }
  for (const auto& node : copy->nodes_) {
    for (Value& input : node->inputs_) input = mapped(input);
  }
  for (const Output& output : outputs_) {
    copy->outputs_.push_back({output.name, mapped(output.value)});
  }
  for (const auto& [name, node] : variable_nodes_) copy->variable_nodes_[name] = map.at(node);
  for (const auto& [name, node] : commits_) copy->commits_[name] = map.at(node);
  copy->variables_ = variables_;
  copy->variable_index_ = variable_index_;
  copy->name_counts_ = name_counts_;
  copy->next_id_ = next_id_;
  return copy;
}

std::vector<Node*> Graph::inputs() const { return NodesOfOp(nodes_, "input"); }
std::vector<Node*> Graph::variable_nodes() const { return NodesOfOp(nodes_, "variable"); }
std::vector<Node*> Graph::commits() const { return NodesOfOp(nodes_, "commit"); }

const Variable* Graph::FindVariable(const std::string& name) const {
  const int index = VariableIndex(name);
  return index < 0 ? nullptr : &variables_[static_cast<size_t>(index)];
}

int Graph::VariableIndex(const std::string& name) const {
  const auto it = variable_index_.find(name);
  return it == variable_index_.end() ? -1 : static_cast<int>(it->second);
}

Node* Graph::FindVariableNode(const std::string& name) const {
  return FindIn(variable_nodes_, name);
}

Node* Graph::FindCommit(const std::string& variable) const { return FindIn(commits_, variable); }

std::unordered_map<std::string, Node*>* Graph::StateNodes(const Node& node) {
  if (node.op().name == "variable") return &variable_nodes_;
  return node.op().name == "commit" ? &commits_ : nullptr;
}

absl::Status Graph::AddVariable(Variable variable) {
  if (!variable_index_.emplace(variable.name, variables_.size()).second) {
    return absl::AlreadyExistsError(Concat("variable \"", variable.name, "\" is declared twice"));
  }
  variables_.push_back(std::move(variable));
  return absl::OkStatus();
}

void Graph::RemoveVariables(const std::set<std::string>& names) {
  std::erase_if(variables_,
                [&](const Variable& variable) { return names.count(variable.name) != 0; });
  variable_index_.clear();
  for (size_t i = 0; i < variables_.size(); ++i) variable_index_[variables_[i].name] = i;
}

Node* Graph::AddNode(const OpRecord* op, std::vector<Value> inputs, Attributes attrs,
                     std::vector<ValueType> outputs, const std::string& name_hint,
                     const std::string& scope) {
  HT_CHECK(op != nullptr, "a node needs an op record");
  auto& node = nodes_.emplace_back(std::make_unique<Node>());
  node->id_ = next_id_++;
  node->op_ = op;
  node->name_ = UniqueName(name_hint);
  node->scope_ = scope;
  node->attrs_ = std::move(attrs);
  node->inputs_ = std::move(inputs);
  node->outputs_ = std::move(outputs);
  node->graph_ = this;
  by_name_[node->name_] = node.get();
  if (auto* state = StateNodes(*node)) state->emplace(VariableOf(*node), node.get());
  return node.get();
}

void Graph::ReplaceUses(Value from, Value to, const Node* except) {
  for (const auto& node : nodes_) {
    if (node.get() == except) continue;
    for (Value& input : node->inputs_) {
      if (input == from) input = to;
    }
  }
  for (Output& output : outputs_) {
    if (output.value == from) output.value = to;
  }
}

void Graph::Remove(const std::vector<Node*>& nodes) {
  if (nodes.empty()) return;
  const std::unordered_set<const Node*> removed(nodes.begin(), nodes.end());
  std::vector<std::unique_ptr<Node>> kept;
  kept.reserve(nodes_.size());
  for (auto& node : nodes_) {
    if (removed.count(node.get()) != 0) {
      by_name_.erase(node->name_);
      if (auto* state = StateNodes(*node)) {
        const auto it = state->find(VariableOf(*node));
        if (it != state->end() && it->second == node.get()) state->erase(it);
      }
      continue;
    }
    for (const Value& input : node->inputs_) {
      HT_CHECK(removed.count(input.node) == 0, "a removed node still has a user");
    }
    kept.push_back(std::move(node));
  }
  for (const Output& output : outputs_) {
    HT_CHECK(removed.count(output.value.node) == 0, "a removed node is still a graph output");
  }
  nodes_ = std::move(kept);
}

Node* Graph::FindNode(const std::string& name) const { return FindIn(by_name_, name); }

std::string Graph::UniqueName(const std::string& hint) {
  // Leaves room for a suffix.
  std::string name = hint.substr(0, kMaxNameBytes - 24);
  for (char& c : name) {
    if (!IsNameChar(c)) c = '_';
  }
  if (IsValidName(hint)) name = hint;
  if (name.empty()) name = "v";
  if (by_name_.count(name) == 0) return name;
  name = name.substr(0, kMaxNameBytes - 24);
  // The counter only grows, so the names tried over the life of a graph are linear in its nodes.
  int64_t& count = name_counts_[name];
  for (;;) {
    std::string candidate = name + "_" + std::to_string(++count);
    if (by_name_.count(candidate) == 0) return candidate;
  }
}

}  // namespace halftone::ir
