#include "halftone/passes/amp/policy_match.h"

#include <algorithm>
#include <numeric>

#include "halftone/passes/amp/value_ranges.h"

namespace halftone::amp {
namespace {

using ir::AmpClass;

// An entry of a policy, taken apart.
struct Entry {
  std::string text;
  AmpClass amp_class;
  const ir::OpRecord* op = nullptr;        // an op type; null: a path pattern
  std::string attribute = {}, value = {};  // "groups", "64"; empty: no condition
  bool matched = false;
};

// An attribute's value as a user writes it in a condition.
std::string AttrText(const ir::AttrValue& value) {
  if (auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (auto* i = std::get_if<int64_t>(&value)) return Concat(*i);
  if (auto* d = std::get_if<double>(&value)) return Concat(*d);
  if (auto* s = std::get_if<std::string>(&value)) return *s;
  if (auto* t = std::get_if<DType>(&value)) return Name(*t);
  if (auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    std::string out;
    for (int64_t x : *list) out += Concat(out.empty() ? "" : ",", x);
    return out;
  }
  return "";
}

absl::StatusOr<Entry> TakeApart(const std::string& text, AmpClass amp_class) {
  Entry entry{text, amp_class};
  size_t open = text.find('[');
  entry.op = ir::OpRegistry::Global().Find(text.substr(0, open));
  if (open == std::string::npos) return entry;
  if (entry.op == nullptr) {
    return InvalidArgument("amp policy: \"", text, "\": no op is called \"", text.substr(0, open),
                           "\"");
  }
  size_t equals = text.find('=', open);
  if (equals == std::string::npos || text.back() != ']') {
    return InvalidArgument("amp policy: \"", text, "\"; expected op[attribute=value]");
  }
  entry.attribute = text.substr(open + 1, equals - open - 1);
  entry.value = text.substr(equals + 1, text.size() - equals - 2);
  const auto& attrs = entry.op->attrs;
  if (std::none_of(attrs.begin(), attrs.end(),
                   [&](const ir::AttrSpec& a) { return a.name == entry.attribute; })) {
    return InvalidArgument("amp policy: \"", text, "\": ", entry.op->name, " has no attribute \"",
                           entry.attribute, "\"");
  }
  return entry;
}

bool Matches(const Entry& entry, const ir::Node& node) {
  if (entry.op == nullptr) return GlobMatches(entry.text, node.path());
  if (entry.op != &node.op()) return false;
  if (entry.attribute.empty()) return true;
  const ir::AttrValue* value = node.attrs().Find(entry.attribute);
  return value != nullptr && AttrText(*value) == entry.value;
}

// The place of an entry in the precedence list of policy.h.
int Rank(const Entry& entry) { return entry.op == nullptr ? 1 : entry.attribute.empty() ? 4 : 3; }

int Care(AmpClass amp_class) {
  switch (amp_class) {
    case AmpClass::kDeny:
      return 3;
    case AmpClass::kClear:
      return 2;
    case AmpClass::kInfer:
      return 1;
    case AmpClass::kAllow:
      return 0;
  }
  return 0;
}

bool Stronger(const Entry& a, const Entry& b) {
  if (Rank(a) != Rank(b)) return Rank(a) < Rank(b);
  if (a.text.size() != b.text.size()) return a.text.size() > b.text.size();
  return Care(a.amp_class) > Care(b.amp_class);
}

ClassChoice FromTrait(const ir::Node& node, DType low, const ir::AmpMagnified& magnified) {
  const ir::AmpTrait& trait = node.op().amp;
  ClassChoice choice{low == DType::kF16 ? trait.f16 : trait.bf16, trait.reason};
  if (trait.refine) {
    if (auto refined = trait.refine(node, low)) choice = {refined->amp_class, refined->reason};
  }
  if (!magnified.inputs.empty() && choice.amp_class != AmpClass::kDeny) {
    choice = {AmpClass::kDeny, magnified.reason};
  }
  return choice;
}

// Which operands' rounding the op enlarges; no inputs: none.
ir::AmpMagnified MagnifiedBy(const ir::Node& node, DType low, const passes::ValueRanges& ranges) {
  const ir::AmpTrait& trait = node.op().amp;
  if (!trait.magnifies) return {};
  return trait.magnifies(node, low, ranges.OfInputs(node)).value_or(ir::AmpMagnified{});
}

// What the level makes of a class that nobody asked for.
ClassChoice AtLevel(ClassChoice choice, Level level) {
  const bool soft = choice.amp_class == AmpClass::kInfer || choice.amp_class == AmpClass::kClear;
  const bool kept = choice.amp_class == AmpClass::kClear && level == Level::kConservative;
  if (level == Level::kForce && choice.amp_class != AmpClass::kAllow) {
    return {AmpClass::kAllow, "level force"};
  }
  if (level == Level::kBalanced || level == Level::kForce || !soft || kept) return choice;
  return {AmpClass::kDeny, Concat("level ", Name(level))};
}

ClassChoice Choose(const ir::Node& node, const Entry* best, DType low, Level level,
                   const ir::AmpMagnified& magnified) {
  if (node.amp_request != 0 && (best == nullptr || Rank(*best) > 2)) {
    return node.amp_request < 0 ? ClassChoice{AmpClass::kDeny, "the user keeps it f32", true}
                                : ClassChoice{AmpClass::kAllow, "the user allows it", true};
  }
  if (best != nullptr) {
    return {best->amp_class, Concat("policy: ", Name(best->amp_class), " ", best->text), true};
  }
  return AtLevel(FromTrait(node, low, magnified), level);
}

int EditDistance(const std::string& a, const std::string& b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

bool GlobMatches(const std::string& pattern, const std::string& text) {
  // Greedy with one point to come back to: the last `*` and how much of the text it has eaten.
  size_t p = 0, t = 0, star = std::string::npos, eaten = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      eaten = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++eaten;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

absl::Status CheckEntry(const std::string& entry) {
  return TakeApart(entry, AmpClass::kDeny).status();
}

std::string NearNames(const std::string& text, const ir::Graph& graph) {
  std::vector<std::pair<int, std::string>> names;
  auto add = [&](const std::string& name) { names.emplace_back(EditDistance(text, name), name); };
  for (const auto& node : graph.nodes()) {
    if (!node->op().is_marker) add(node->path());
  }
  for (const ir::OpRecord* op : ir::OpRegistry::Global().All()) {
    if (!op->is_marker) add(op->name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string out;
  for (size_t i = 0; i < names.size() && i < 5; ++i) {
    out += (i == 0 ? "" : ", ") + names[i].second;
  }
  return out;
}

std::string EntryText(AmpClass amp_class, const std::string& entry) {
  return Concat(Name(amp_class), " \"", entry, "\"");
}

absl::StatusOr<std::map<int64_t, ClassChoice>> ClassifyNodes(
    const ir::Graph& graph, const Policy& policy, DType low,
    std::map<std::string, std::string>* unmatched) {
  std::vector<Entry> entries;
  const std::pair<AmpClass, const std::vector<std::string>*> lists[] = {
      {AmpClass::kAllow, &policy.allow},
      {AmpClass::kInfer, &policy.infer},
      {AmpClass::kClear, &policy.clear},
      {AmpClass::kDeny, &policy.deny}};
  for (const auto& [amp_class, list] : lists) {
    for (const std::string& text : *list) {
      HT_ASSIGN_OR_RETURN(Entry entry, TakeApart(text, amp_class));
      entries.push_back(std::move(entry));
    }
  }
  const passes::ValueRanges ranges(graph);
  std::map<int64_t, ClassChoice> classes;
  for (const auto& node : graph.nodes()) {
    const Entry* best = nullptr;
    for (Entry& entry : entries) {
      if (!Matches(entry, *node)) continue;
      entry.matched = true;
      if (best == nullptr || Stronger(entry, *best)) best = &entry;
    }
    ir::AmpMagnified magnified = MagnifiedBy(*node, low, ranges);
    ClassChoice& choice = classes[node->id()] = Choose(*node, best, low, policy.level, magnified);
    if (choice.amp_class == AmpClass::kDeny) choice.magnified = std::move(magnified);
  }
  for (const Entry& entry : entries) {
    if (unmatched == nullptr || entry.op != nullptr || entry.matched) continue;
    const std::string text = EntryText(entry.amp_class, entry.text);
    (*unmatched)[text] =
        Concat("amp policy: ", text,
               " matches no node and is no op; nearest: ", NearNames(entry.text, graph));
  }
  return classes;
}

}  // namespace halftone::amp
