#include "halftone/passes/amp/deny_spread.h"

#include <algorithm>
#include <tuple>

#include "halftone/passes/amp/range_lint.h"

namespace halftone::passes {

using ir::AmpClass;

std::vector<std::string> DenySpread::Run(const std::vector<std::string>& missing_kernel,
                                         std::vector<std::string>* notes) {
  seed_reason_.resize(graph_.size());
  range_.assign(graph_.size(), false);
  leading_.assign(graph_.size(), false);
  parent_.assign(graph_.size(), -1);
  seed_.assign(graph_.size(), -1);
  depth_.assign(graph_.size(), 0);
  Seed(missing_kernel, notes);
  FindLeadingClear();
  Spread(true);
  Spread(false);
  // After what spreads down: the other readers of what is computed in f32 for one of them read a cast.
  Widen(true);
  Widen(false);
  std::vector<std::string> reasons(graph_.size());
  for (int v = 0; v < graph_.size(); ++v) {
    if (parent_[v] >= 0) reasons[v] = ChainReason(v);
  }
  return reasons;
}

std::set<const ir::Node*> DenySpread::Losses() const {
  std::set<const ir::Node*> losses;
  for (const AmpVertex& vertex : graph_.vertices()) {
    if (vertex.node->op().name != "backward") continue;
    losses.insert(LookThroughAmpCasts(vertex.node->input(0)).node);
  }
  return losses;
}

void DenySpread::Seed(const std::vector<std::string>& missing_kernel,
                      std::vector<std::string>* notes) {
  const std::set<const ir::Node*> losses = Losses();
  for (int v : graph_.by_name()) {
    const AmpVertex& vertex = graph_[v];
    if (vertex.role != AmpRole::kPaintable) continue;
    const AmpClass amp_class = vertex.choice.amp_class;
    if (amp_class == AmpClass::kDeny) {
      seed_reason_[v] = Concat("f32: denied: ", vertex.choice.why);
    } else if (auto problem = RangeProblemOfVertex(graph_, v, ranges_, low_)) {
      const bool overruled = amp_class == AmpClass::kAllow && vertex.choice.forced;
      if (missing_kernel[v].empty()) {
        notes->push_back(
            Concat(graph_.name(v), ": ", problem->text,
                   overruled ? "; runs in 16 bit because the user says so" : "; stays f32"));
      }
      if (overruled) continue;
      seed_reason_[v] = Concat("f32: range: ", problem->text);
      range_[v] = true;
    } else if (!(amp_class == AmpClass::kAllow && vertex.choice.forced) &&
               losses.count(vertex.node)) {
      seed_reason_[v] = "f32: denied: it is the loss";
    } else {
      continue;
    }
    parent_[v] = seed_[v] = v;
  }
}

void DenySpread::FindLeadingClear() {
  std::vector<int> stack;
  for (int v = 0; v < graph_.size(); ++v) {
    if (graph_[v].role != AmpRole::kPaintable) continue;
    if (parent_[v] == v || graph_[v].choice.amp_class == AmpClass::kInfer) stack.push_back(v);
  }
  while (!stack.empty()) {
    int v = stack.back();
    stack.pop_back();
    for (int p : graph_.MainProducers(v)) {
      if (p < 0 || leading_[p] || graph_[p].choice.amp_class != AmpClass::kClear) continue;
      leading_[p] = true;
      stack.push_back(p);
    }
  }
}

void DenySpread::Spread(bool range) {
  // Breadth first, each level in the order of names, so that every chain is the shortest and the
  // first by name.
  auto by_name = [this](int a, int b) { return graph_.name(a) < graph_.name(b); };
  std::vector<int> frontier;
  for (int v : graph_.by_name()) {
    if (parent_[v] == v && range_[v] == range) frontier.push_back(v);
  }
  while (!frontier.empty()) {
    std::sort(frontier.begin(), frontier.end(), by_name);
    std::vector<int> following;
    for (int v : frontier) {
      for (int u : graph_[v].users) {
        if (graph_[u].role != AmpRole::kPaintable || parent_[u] >= 0) continue;
        const AmpClass amp_class = graph_[u].choice.amp_class;
        const bool through_clear = amp_class == AmpClass::kClear && (leading_[u] || range);
        if (amp_class != AmpClass::kInfer && !through_clear) continue;
        parent_[u] = v;
        seed_[u] = seed_[v];
        depth_[u] = depth_[v] + 1;
        range_[u] = range;
        following.push_back(u);
      }
    }
    frontier = std::move(following);
  }
}

void DenySpread::Widen(bool poles) {
  struct Step {
    int v;       // whose result is to be f32
    int reader;  // for this vertex
    int origin;  // which reads it, or what is made of it, on a port that enlarges rounding
  };
  const auto by_name = [this](const Step& a, const Step& b) {
    return std::tie(graph_.name(a.origin), graph_.name(a.v), graph_.name(a.reader)) <
           std::tie(graph_.name(b.origin), graph_.name(b.v), graph_.name(b.reader));
  };
  std::vector<Step> level;
  for (int v = 0; v < graph_.size(); ++v) {
    const ir::AmpMagnified& magnified = graph_[v].choice.magnified;
    if (graph_[v].role != AmpRole::kPaintable || (poles && !magnified.pole)) continue;
    for (int port : magnified.inputs) {
      level.push_back({graph_[v].producers[static_cast<size_t>(port)], v, v});
    }
  }
  std::vector<int> readers(graph_.size(), -1), between(graph_.size(), 0);
  while (!level.empty()) {
    level.erase(std::remove_if(level.begin(), level.end(), [](const Step& s) { return s.v < 0; }),
                level.end());
    std::sort(level.begin(), level.end(), by_name);
    std::vector<Step> following;
    for (const Step& step : level) {
      const AmpVertex& vertex = graph_[step.v];
      const AmpClass amp_class = vertex.choice.amp_class;
      const bool overruled = vertex.choice.forced && amp_class != AmpClass::kDeny;
      if (vertex.role != AmpRole::kPaintable || readers[step.v] >= 0 || overruled) continue;
      const bool entered = poles ? amp_class == AmpClass::kAllow || amp_class == AmpClass::kClear
                                 : amp_class != AmpClass::kAllow;
      if (!entered) continue;
      readers[step.v] = step.reader;
      between[step.v] = step.reader == step.origin ? 0 : between[step.reader] + 1;
      if (parent_[step.v] < 0) {
        parent_[step.v] = seed_[step.v] = step.v;
        seed_reason_[step.v] = Concat("f32: denied, because ", graph_.name(step.origin),
                                      " reads it", Via(step.reader, readers, between[step.v]), ": ",
                                      graph_[step.origin].choice.magnified.reason);
      }
      if (amp_class == AmpClass::kAllow || vertex.node->op().amp.accumulates_in_f32) continue;
      for (int p : graph_.MainProducers(step.v)) following.push_back({p, step.v, step.origin});
    }
    level = std::move(following);
  }
}

// " via a, b, c and 2 more": the nearest of `count` vertices, from `v` on along `next`.
std::string DenySpread::Via(int v, const std::vector<int>& next, int count) const {
  constexpr int kShown = 3;
  std::string text;
  for (int i = 0; i < count && i < kShown; ++i, v = next[v]) {
    text += Concat(i == 0 ? " via " : ", ", graph_.name(v));
  }
  if (count > kShown) text += Concat(" and ", count - kShown, " more");
  return text;
}

std::string DenySpread::ChainReason(int v) const {
  if (parent_[v] == v) return seed_reason_[v];
  std::string text =
      Concat("f32: ", range_[v] ? "range" : "denied", ", because reads ", graph_.name(seed_[v]));
  // What v reads, then what that reads, ..., as far as the seed.
  return text + Via(parent_[v], parent_, depth_[v] - 1);
}

}  // namespace halftone::passes
