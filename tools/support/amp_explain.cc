#include "halftone/tools/support/amp_explain.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <utility>
#include <vector>

#include "halftone/core/printable.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/passes/amp/insert_amp_casts.h"
#include "halftone/passes/amp/policy_match.h"
#include "halftone/passes/amp/policy_text.h"
#include "halftone/passes/amp/quantise_matmuls.h"
#include "halftone/passes/amp/trim_amp_islands.h"
#include "halftone/passes/pass_manager.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tools/support/table.h"

namespace halftone::tools {
namespace {

const ir::Node* MarkerOf(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (passes::IsOp(*node, "amp")) return node.get();
  }
  return nullptr;
}

// The nodes that a decision is due to, as its reason names them.
std::vector<std::string> Causes(const std::string& reason) {
  static const auto* const forms = new std::vector<std::regex>{
      std::regex(R"(because reads (\S+?)(?: via ([^:]+?))?(?: and \d+ more)?$)"),
      std::regex(R"(because (\S+) reads it(?: via ([^:]+?))?(?: and \d+ more)?: )"),
      std::regex(R"(between (\S+) and (\S+)$)"),
      std::regex(R"((?:follows|read by) (\S+)$)"),
      std::regex(R"(reads (\S+) as it is$)"),
      std::regex(R"(share a dtype and (\S+) is f32$)")};
  std::vector<std::string> names;
  for (const std::regex& form : *forms) {
    std::smatch match;
    if (!std::regex_search(reason, match, form)) continue;
    // The nearest first: what stands behind "via" is between.
    for (size_t i = match.size() - 1; i > 0; --i) {
      std::string text = match[i].str();
      for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(", ", at), text.size());
        if (end > at) names.push_back(text.substr(at, end - at));
        at = end + 2;
      }
    }
    break;
  }
  return names;
}

class Chain {
 public:
  explicit Chain(const ir::Graph& graph) {
    for (const auto& node : graph.nodes()) by_name_[node->name()] = node.get();
  }

  std::string TextOf(const ir::Node& node) {
    Add(node, 0);
    return std::move(text_);
  }

 private:
  void Add(const ir::Node& node, int depth) {
    text_ += std::string(static_cast<size_t>(2 * depth), ' ') + node.path() + " (" +
             node.op().name + (node.location.file.empty() ? "" : ", " + node.location.ToString()) +
             "): " + (node.amp.reason.empty() ? "nothing is decided about it" : node.amp.reason) +
             "\n";
    if (!seen_.insert(&node).second) return;
    for (const std::string& name : Causes(node.amp.reason)) {
      const auto cause = by_name_.find(name);
      if (cause != by_name_.end() && seen_.count(cause->second) == 0)
        Add(*cause->second, depth + 1);
    }
  }

  std::map<std::string, const ir::Node*> by_name_;
  std::set<const ir::Node*> seen_;
  std::string text_;
};

std::vector<std::string> SplitChanges(const std::string& changes) {
  static const auto* const start =
      new std::regex("^(allow|infer|clear|deny|level|dtype|trim|low_outputs):");
  std::vector<std::string> parts;
  for (size_t at = 0; at <= changes.size();) {
    const size_t end = std::min(changes.find(',', at), changes.size());
    const std::string part = changes.substr(at, end - at);
    // A condition may have a comma: deny:conv2d[strides=1,1].
    if (parts.empty() || std::regex_search(part, *start)) {
      parts.push_back(part);
    } else {
      parts.back() += "," + part;
    }
    at = end + 1;
  }
  return parts;
}

std::map<std::string, const passes::AmpReportRow*> ByNode(const passes::AmpReport& report) {
  std::map<std::string, const passes::AmpReportRow*> rows;
  for (const passes::AmpReportRow& row : report.rows) rows[row.node] = &row;
  return rows;
}

}  // namespace

absl::StatusOr<amp::Policy> PolicyOf(const ir::Graph& graph) {
  const ir::Node* marker = MarkerOf(graph);
  if (marker == nullptr) {
    return NotFound("no `amp` marker: the graph was traced without mixed precision, or the passes ",
                    "have read it already; expected the graph as traced (of a folder of dumps ",
                    "--after=input)");
  }
  return amp::Policy::FromMarker(*marker);
}

absl::StatusOr<std::unique_ptr<ir::Graph>> WithPolicy(const ir::Graph& graph, amp::Policy policy,
                                                      const ir::Target& target) {
  std::unique_ptr<ir::Graph> traced = graph.Clone();
  ir::Node* marker = passes::FindMarker(*traced, "amp");
  if (marker == nullptr) {
    for (const auto& node : traced->nodes()) {
      if (!node->amp.decided) continue;
      return FailedPrecondition(
          "the graph has been through insert-amp-casts; expected it as traced ",
          "(of a folder of dumps --after=input)");
    }
  }
  if (!policy.dtype) {
    std::string why;
    policy.dtype =
        marker != nullptr ? marker->attrs().GetDType("dtype") : target.PreferredLowType(&why);
    if (!amp::IsPolicyDType(*policy.dtype)) {
      return FailedPrecondition(target.name(), " prefers f32: ", why,
                                "; expected a policy with a dtype");
    }
  }
  if (marker != nullptr) traced->Remove({marker});
  ir::Builder builder(traced.get());
  if (builder.Root("amp", {}, policy.ToMarker()) == nullptr) return builder.status();
  return traced;
}

absl::StatusOr<std::unique_ptr<ir::Graph>> DecideUnder(const ir::Graph& graph, amp::Policy policy,
                                                       const ir::Target& target) {
  HT_ASSIGN_OR_RETURN(std::unique_ptr<ir::Graph> decided,
                      WithPolicy(graph, std::move(policy), target));
  passes::PassManager manager;
  manager.Add(passes::MakeInsertAmpCasts());
  manager.Add(passes::MakeTrimAmpIslands());
  manager.Add(passes::MakeQuantiseMatmuls());
  passes::PassContext context;
  context.target = &target;
  HT_RETURN_IF_ERROR(manager.Run(*decided, context));
  return decided;
}

absl::StatusOr<std::string> WhyDecided(const ir::Graph& decided, const std::string& name) {
  for (const auto& node : decided.nodes()) {
    const std::string path = passes::PathInAmpReport(*node);
    if (path == name || path.substr(path.rfind('/') + 1) == name || node->name() == name) {
      return Chain(decided).TextOf(*node);
    }
  }
  return NotFound("no node is called \"", Printable(name),
                  "\"; nearest: ", amp::NearNames(name, decided));
}

absl::StatusOr<amp::Policy> WithChanges(amp::Policy policy, const std::string& changes) {
  std::vector<std::string>* const lists[] = {&policy.allow, &policy.infer, &policy.clear,
                                             &policy.deny};
  std::string added;
  for (const std::string& change : SplitChanges(changes)) {
    const size_t colon = change.find(':');
    if (colon == std::string::npos || colon + 1 == change.size()) {
      return InvalidArgument("\"", Printable(change), "\"; expected for example deny:softmax");
    }
    const std::string field = change.substr(0, colon), value = change.substr(colon + 1);
    for (std::vector<std::string>* list : lists) std::erase(*list, value);
    added += Concat(field, ": ", amp::Quoted(value), "\n");
  }
  absl::StatusOr<amp::Policy> changed = amp::Policy::Parse(policy.ToString() + added);
  if (changed.ok()) return changed;
  // Lines of a text that the user does not see.
  const std::string message = Message(changed.status());
  return InvalidArgument(message.substr(message.find(": ") + 2));
}

int CountChanged(const passes::AmpReport& before, const passes::AmpReport& after) {
  const auto was = ByNode(before);
  return static_cast<int>(
      std::count_if(after.rows.begin(), after.rows.end(), [&was](const auto& row) {
        const auto old = was.find(row.node);
        return old == was.end() || old->second->dtype != row.dtype;
      }));
}

std::string DiffAmp(const passes::AmpReport& before, const passes::AmpReport& after,
                    const AmpNames& names) {
  const auto was = ByNode(before);
  std::vector<std::vector<std::string>> table = {{"node", names.before, names.after, "why"}};
  for (const passes::AmpReportRow& row : after.rows) {
    const auto old = was.find(row.node);
    if (old != was.end() && old->second->dtype == row.dtype) continue;
    table.push_back({Printable(row.node), old == was.end() ? "-" : Name(old->second->dtype),
                     Name(row.dtype), Printable(row.why)});
  }
  const std::string changes = table.size() == 1 ? "no decision differs\n" : FormatTable(table);
  return Concat(changes, names.before, ": ", passes::Summary(before), "\n", names.after, ": ",
                passes::Summary(after), "\n");
}

std::string EffectivePolicy(const amp::Policy& policy, const passes::AmpReport& report) {
  struct Kind {
    ir::AmpClass amp_class;
    int low = 0, f32 = 0;
  };
  std::map<std::string, Kind> kinds;
  for (const passes::AmpReportRow& row : report.rows) {
    if (!row.is_decided) continue;
    Kind& kind = kinds.emplace(row.op, Kind{row.amp_class}).first->second;
    ++(IsLow(row.dtype) ? kind.low : kind.f32);
  }
  std::string text = Concat(
      "# Mixed precision: amp::Policy, in the text form of proto/amp_policy.proto. What follows a '#'\n",
      "# is a comment; take the '#' of an entry away, or write another, to change what happens.\n",
      "# ", passes::Summary(report), "\n\n", policy.ToString(), "\n",
      "# level: BALANCED, CONSERVATIVE, ONLY_MATMUL or FORCE\n",
      "# entries: an op, an op under a condition, conv2d[groups=1], or a pattern over paths, head/*\n",
      "#\n# The operators of the graph, their classes, and in what their nodes run:\n");
  for (const auto& [op, kind] : kinds) {
    text += Concat("# ", Name(kind.amp_class), ": ", amp::Quoted(op), "  # ", kind.low,
                   " in 16 bit, ", kind.f32, " in f32\n");
  }
  text += "#\n# Nodes in f32 that are of another class than deny:\n";
  for (const passes::AmpReportRow& row : report.rows) {
    if (!row.is_decided || IsLow(row.dtype) || row.amp_class == ir::AmpClass::kDeny) continue;
    text += Concat("# allow: ", Printable(amp::Quoted(row.node)), "  # ", Printable(row.why), "\n");
  }
  return text;
}

}  // namespace halftone::tools
