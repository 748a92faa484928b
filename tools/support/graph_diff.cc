#include "halftone/tools/support/graph_diff.h"

#include <algorithm>
#include <set>

#include "halftone/core/strings.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/ir/text_format.h"
#include "halftone/tools/support/graph_match.h"
#include "halftone/tools/support/json_text.h"

namespace halftone::tools {
namespace {

using Kind = DifferenceKind;

struct KindText {
  const char* name;
  const char* title;
};

constexpr KindText kKinds[] = {
    {"removed", "nodes removed"},        {"added", "nodes added"},
    {"dtype", "dtypes changed"},         {"type", "shapes or layouts changed"},
    {"attribute", "attributes changed"}, {"input", "operands changed"},
    {"name", "nodes renamed"},           {"scope", "modules changed"},
    {"output", "graph outputs changed"}, {"variable", "unread variables changed"},
};

const KindText& TextOf(Kind kind) { return kKinds[static_cast<int>(kind)]; }

// As in the text form; large constants by name only.
std::string TextOf(const ir::Node& node) {
  ir::TextOptions options;
  options.constant_files = true;
  return ir::Print(node, options);
}

class Differ {
 public:
  Differ(const ir::Graph& a, const ir::Graph& b) : a_(a), b_(b), match_(MatchNodes(a, b)) {}

  std::vector<Difference> Run() {
    for (const auto& node : a_.nodes()) {
      if (!match_.a_to_b.contains(node.get())) {
        Add(Kind::kRemoved, "%" + node->name(), "", TextOf(*node), "");
      }
    }
    for (const auto& node : b_.nodes()) {
      const auto in_a = match_.b_to_a.find(node.get());
      if (in_a == match_.b_to_a.end()) {
        Add(Kind::kAdded, "%" + node->name(), "", "", TextOf(*node));
      } else {
        CompareNodes(*in_a->second, *node);
      }
    }
    CompareOutputs();
    CompareVariables();
    std::stable_sort(differences_.begin(), differences_.end(),
                     [](const auto& x, const auto& y) { return x.kind < y.kind; });
    return std::move(differences_);
  }

 private:
  void Add(Kind kind, std::string node, std::string what, std::string from, std::string to) {
    differences_.push_back(
        {kind, std::move(node), std::move(what), std::move(from), std::move(to)});
  }

  // Whether `in_b` is the node output that `in_a` has become.
  bool IsSame(const ir::Value& in_a, const ir::Value& in_b) const {
    const auto found = match_.a_to_b.find(in_a.node);
    return found != match_.a_to_b.end() && found->second == in_b.node && in_a.index == in_b.index;
  }

  void CompareNodes(const ir::Node& a, const ir::Node& b) {
    const std::string name = "%" + b.name();
    if (a.name() != b.name()) Add(Kind::kName, name, "", "%" + a.name(), name);
    if (a.scope() != b.scope()) {
      Add(Kind::kScope, name, "", ir::Quote(a.scope()), ir::Quote(b.scope()));
    }
    for (int i = 0; i < std::max(a.num_outputs(), b.num_outputs()); ++i) {
      CompareTypes(a, b, i);
    }
    CompareAttributes(a, b);
    for (int i = 0; i < std::max(a.num_inputs(), b.num_inputs()); ++i) {
      const bool in_both = i < a.num_inputs() && i < b.num_inputs();
      if (in_both && IsSame(a.input(i), b.input(i))) continue;
      Add(Kind::kInput, name, Concat("operand ", i),
          i < a.num_inputs() ? a.input(i).ToString() : "none",
          i < b.num_inputs() ? b.input(i).ToString() : "none");
    }
  }

  void CompareTypes(const ir::Node& a, const ir::Node& b, int i) {
    const bool in_both = i < a.num_outputs() && i < b.num_outputs();
    if (in_both && a.output_type(i) == b.output_type(i)) return;
    const bool same_dtype = in_both && a.output_type(i).dtype == b.output_type(i).dtype;
    Add(same_dtype ? Kind::kType : Kind::kDType, "%" + b.name(), i == 0 ? "" : Concat("output ", i),
        i < a.num_outputs() ? a.output_type(i).ToString() : "none",
        i < b.num_outputs() ? b.output_type(i).ToString() : "none");
  }

  void CompareAttributes(const ir::Node& a, const ir::Node& b) {
    std::set<std::string> names;
    for (const auto* node : {&a, &b}) {
      for (const auto& [name, value] : node->attrs().entries()) {
        // A source repeats its type as attributes.
        if (node->num_inputs() == 0 && (name == "dtype" || name == "shape")) continue;
        names.insert(name);
      }
    }
    for (const std::string& name : names) {
      const ir::AttrValue* from = a.attrs().Find(name);
      const ir::AttrValue* to = b.attrs().Find(name);
      if (from != nullptr && to != nullptr && ir::Equal(*from, *to)) continue;
      const auto text = [](const ir::AttrValue* value) {
        return value == nullptr ? "none" : ir::FormatAttrBriefly(*value);
      };
      std::string other = text(to);
      if (text(from) == other) other += " with other values";
      Add(Kind::kAttribute, "%" + b.name(), name, text(from), other);
    }
  }

  void CompareOutputs() {
    const auto text = [](const ir::Output& output) {
      return (output.name.empty() ? "" : output.name + "=") + output.value.ToString();
    };
    const auto& a = a_.outputs();
    const auto& b = b_.outputs();
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const bool in_both = i < a.size() && i < b.size();
      if (in_both && a[i].name == b[i].name && IsSame(a[i].value, b[i].value)) continue;
      Add(Kind::kOutput, "", Concat("output ", i), i < a.size() ? text(a[i]) : "none",
          i < b.size() ? text(b[i]) : "none");
    }
  }

  // Those without a node; the others have been compared as nodes.
  void CompareVariables() {
    std::set<std::string> as_nodes;
    for (const ir::Graph* graph : {&a_, &b_}) {
      for (const ir::Node* node : graph->variable_nodes()) {
        as_nodes.insert(node->attrs().GetString("name"));
      }
    }
    const auto text = [](const ir::Variable* v) {
      if (v == nullptr) return std::string("none");
      return Concat(v->type, " ", ir::Name(v->kind), v->trainable ? " trainable" : "", " ",
                    v->init.ToString());
    };
    const auto compare = [&](const ir::Variable* a, const ir::Variable* b) {
      const std::string& name = (a == nullptr ? b : a)->name;
      if (as_nodes.contains(name) || (a != nullptr && b != nullptr && *a == *b)) return;
      Add(Kind::kVariable, "", ir::Quote(name), text(a), text(b));
    };
    for (const ir::Variable& v : a_.variables()) compare(&v, b_.FindVariable(v.name));
    for (const ir::Variable& v : b_.variables()) {
      if (a_.FindVariable(v.name) == nullptr) compare(nullptr, &v);
    }
  }

  const ir::Graph& a_;
  const ir::Graph& b_;
  const GraphMatch match_;
  std::vector<Difference> differences_;
};

std::string LineOf(const Difference& d) {
  if (d.kind == Kind::kRemoved) return "- " + d.from;
  if (d.kind == Kind::kAdded) return "+ " + d.to;
  if (d.kind == Kind::kName) return "~ " + d.from + " -> " + d.to;
  std::string line = "~ " + d.node;
  if (!d.what.empty()) line += (d.node.empty() ? "" : " ") + d.what;
  return line + ": " + d.from + " -> " + d.to;
}

}  // namespace

std::vector<Difference> DiffGraphs(const ir::Graph& a, const ir::Graph& b) {
  return Differ(a, b).Run();
}

std::string ToText(const std::vector<Difference>& differences) {
  if (differences.empty()) return "no differences\n";
  std::string text;
  for (size_t i = 0; i < differences.size();) {
    const Kind kind = differences[i].kind;
    size_t end = i;
    while (end < differences.size() && differences[end].kind == kind) ++end;
    text += Concat(TextOf(kind).title, ": ", end - i, "\n");
    for (; i < end; ++i) text += "  " + LineOf(differences[i]) + "\n";
  }
  return text;
}

std::string ToJson(const std::vector<Difference>& differences) {
  Json json = {{"same", differences.empty()}, {"differences", Json::array()}};
  for (const Difference& d : differences) {
    Json entry = {{"kind", TextOf(d.kind).name}};
    for (const auto& [key, value] :
         {std::pair{"node", &d.node}, {"what", &d.what}, {"from", &d.from}, {"to", &d.to}}) {
      if (!value->empty()) entry[key] = *value;
    }
    json["differences"].push_back(std::move(entry));
  }
  return Dump(json);
}

}  // namespace halftone::tools
