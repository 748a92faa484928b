#include "halftone/tools/support/graph_match.h"

#include <string>
#include <vector>

#include "halftone/core/strings.h"
#include "halftone/graph/ir/text_format.h"

namespace halftone::tools {
namespace {

using Nodes = std::vector<const ir::Node*>;

// Numbers what nodes compute: equal numbers, equal computations.
class Numbering {
 public:
  int Of(const ir::Node& node) {
    std::string key = node.op().name;
    for (const auto& [name, value] : node.attrs().entries()) {
      key += Concat(" ", name, "=");
      AddValue(value, key);
    }
    for (const ir::Value& v : node.inputs()) key += Concat(" %", of_.at(v.node), "#", v.index);
    return of_[&node] = numbers_.try_emplace(key, static_cast<int>(numbers_.size())).first->second;
  }

 private:
  // Tensors by their bytes: their text would be several times as long.
  static void AddValue(const ir::AttrValue& value, std::string& key) {
    const auto* tensor = std::get_if<Tensor>(&value);
    if (tensor == nullptr || !tensor->defined()) {
      key += ir::FormatAttr(value);
      return;
    }
    key += tensor->TypeString();
    key.append(static_cast<const char*>(tensor->raw()), tensor->num_bytes());
  }

  std::map<std::string, int> numbers_;
  std::map<const ir::Node*, int> of_;
};

class Matcher {
 public:
  Matcher(const ir::Graph& a, const ir::Graph& b) : a_(a), b_(b) {}

  GraphMatch Run() {
    MatchEqual();
    MatchNamesakes();
    MatchOperands();
    return std::move(match_);
  }

 private:
  bool IsFreeA(const ir::Node* node) const { return !match_.a_to_b.contains(node); }
  bool IsFreeB(const ir::Node* node) const { return !match_.b_to_a.contains(node); }

  void Pair(const ir::Node* in_a, const ir::Node* in_b) {
    match_.a_to_b[in_a] = in_b;
    match_.b_to_a[in_b] = in_a;
  }

  // The first node of `candidates` that is free, if any.
  const ir::Node* FirstFree(const Nodes& candidates) const {
    for (const ir::Node* node : candidates) {
      if (IsFreeA(node)) return node;
    }
    return nullptr;
  }

  void MatchEqual() {
    Numbering numbering;
    std::map<const ir::Node*, int> number_of;
    std::map<int, Nodes> with_number;
    for (const auto& node : a_.nodes()) {
      const int number = numbering.Of(*node);
      number_of[node.get()] = number;
      with_number[number].push_back(node.get());
    }
    for (const auto& node : b_.nodes()) {
      const int number = number_of[node.get()] = numbering.Of(*node);
      const ir::Node* namesake = a_.FindNode(node->name());
      if (namesake != nullptr && number_of.at(namesake) == number) Pair(namesake, node.get());
    }
    for (const auto& node : b_.nodes()) {
      const auto found = with_number.find(number_of.at(node.get()));
      if (found == with_number.end() || !IsFreeB(node.get())) continue;
      if (const ir::Node* in_a = FirstFree(found->second)) Pair(in_a, node.get());
    }
  }

  void MatchNamesakes() {
    for (const auto& node : b_.nodes()) {
      const ir::Node* namesake = a_.FindNode(node->name());
      if (namesake == nullptr || !IsFreeB(node.get()) || !IsFreeA(namesake)) continue;
      if (namesake->op().name == node->op().name) Pair(namesake, node.get());
    }
  }

  void MatchOperands() {
    std::map<std::string, Nodes> with_operands;
    for (const auto& node : a_.nodes()) {
      if (node->num_inputs() == 0 || !IsFreeA(node.get())) continue;
      std::string key = node->op().name;
      for (const ir::Value& v : node->inputs()) key += Concat(" ", v.node->id(), "#", v.index);
      with_operands[key].push_back(node.get());
    }
    for (const auto& node : b_.nodes()) {
      if (!IsFreeB(node.get())) continue;
      std::string key = node->op().name;
      for (const ir::Value& v : node->inputs()) {
        const auto in_a = match_.b_to_a.find(v.node);
        key += in_a == match_.b_to_a.end() ? " new" : Concat(" ", in_a->second->id(), "#", v.index);
      }
      const auto found = with_operands.find(key);
      if (found == with_operands.end()) continue;
      if (const ir::Node* in_a = FirstFree(found->second)) Pair(in_a, node.get());
    }
  }

  const ir::Graph& a_;
  const ir::Graph& b_;
  GraphMatch match_;
};

}  // namespace

GraphMatch MatchNodes(const ir::Graph& a, const ir::Graph& b) { return Matcher(a, b).Run(); }

}  // namespace halftone::tools
