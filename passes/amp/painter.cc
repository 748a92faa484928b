#include "halftone/passes/amp/painter.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "halftone/passes/amp/deny_spread.h"
#include "halftone/passes/amp/range_lint.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ir::AmpClass;

class Painter {
 public:
  Painter(const AmpGraph& graph, const ValueRanges& ranges, DType low, const ir::Target& target)
      : graph_(graph),
        ranges_(ranges),
        low_(low),
        target_(target),
        low_paint_(graph.size(), false),
        by_clear_(graph.size(), false),
        reasons_(graph.size()),
        missing_kernel_(graph.size()) {}

  Painting Run() {
    FindMissingKernels();
    Allow();
    Deny();
    Between();
    if (low_ == DType::kBF16) Follow();
    Clear();
    Groups();
    Observers();
    NoteVainWishes();
    return Result();
  }

 private:
  AmpClass ClassOf(int v) const { return graph_[v].choice.amp_class; }
  bool IsPaintable(int v) const { return graph_[v].role == AmpRole::kPaintable; }
  bool Denied(int v) const { return !denied_[v].empty(); }
  // May still turn 16-bit.
  bool Open(int v) const {
    return IsPaintable(v) && !low_paint_[v] && !Denied(v) && missing_kernel_[v].empty();
  }
  bool IsSoft(int v) const {
    return ClassOf(v) == AmpClass::kInfer || ClassOf(v) == AmpClass::kClear;
  }
  std::string LowReason(const std::string& why) const { return Concat(Name(low_), ": ", why); }
  void PaintLow(int v, const std::string& why) {
    low_paint_[v] = true;
    reasons_[v] = LowReason(why);
  }

  // A value that may be rounded to 16 bit without a reader noticing more than rounding.
  bool IsParameterOrConstant(int v) const {
    return v >= 0 && (IsVariable(*graph_[v].node) || IsConstant(*graph_[v].node));
  }

  void FindMissingKernels() {
    for (int v = 0; v < graph_.size(); ++v) {
      const ir::OpRecord& op = graph_[v].node->op();
      std::vector<std::string> needed = {op.name};
      needed.insert(needed.end(), op.gradient_ops.begin(), op.gradient_ops.end());
      for (const std::string& name : needed) {
        if (target_.HasKernel(name, low_)) continue;
        missing_kernel_[v] =
            Concat("f32: ", target_.name(), " has no ", Name(low_), " kernel for ", name);
        break;
      }
    }
  }

  // Of a node about which nothing is decided: why. "" for what computes with no float, and for roots
  // and markers.
  std::string WhyLeftAlone(int v) const {
    const ir::Node& node = *graph_[v].node;
    if (graph_[v].role != AmpRole::kOpaque || node.num_inputs() == 0 || node.num_outputs() == 0 ||
        node.op().is_marker || node.op().has_side_effect) {
      return "";
    }
    if (IsCast(node)) return "left alone: a cast that the user wrote";
    for (int i = 0; i < node.num_inputs(); ++i) {
      const DType dtype = LogicalDType(node.input(i));
      if (!IsFloat(dtype) || dtype == DType::kF32) continue;
      return Concat("left alone: reads ", LookThroughAmpCasts(node.input(i)).node->name(), " in ",
                    Name(dtype), ", as the user has it");
    }
    return "left alone: computes with no float";
  }

  // Wishes that change nothing, for what has floats.
  void NoteVainWishes() {
    for (int v : graph_.by_name()) {
      const AmpVertex& vertex = graph_[v];
      if (!vertex.choice.forced || ClassOf(v) != AmpClass::kAllow || IsCast(*vertex.node)) continue;
      std::string why;
      if (vertex.role == AmpRole::kSource && vertex.node->num_inputs() > 0) {
        why =
            Concat(vertex.node->op().amp.reason, "; its result is cast where it is read in 16 bit");
      } else if (vertex.role == AmpRole::kOpaque && ReadsFloat(*vertex.node)) {
        why = WhyLeftAlone(v);
      }
      if (!why.empty())
        notes_.push_back(Concat(graph_.name(v), ": to allow it has no effect: ", why));
    }
  }

  static bool ReadsFloat(const ir::Node& node) {
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (IsFloat(node.input_type(i).dtype)) return true;
    }
    return false;
  }

  void Allow() {
    for (int v = 0; v < graph_.size(); ++v) {
      if (!IsPaintable(v) || ClassOf(v) != AmpClass::kAllow) continue;
      if (!missing_kernel_[v].empty()) {
        if (graph_[v].choice.forced) {
          notes_.push_back(Concat(graph_.name(v), " stays ", missing_kernel_[v]));
        }
        continue;
      }
      PaintLow(v, Concat("allowed: ", graph_[v].choice.why));
    }
  }

  void Deny() {
    DenySpread spread(graph_, ranges_, low_);
    denied_ = spread.Run(missing_kernel_, &notes_);
    for (int v = 0; v < graph_.size(); ++v) {
      if (Denied(v)) low_paint_[v] = false;
    }
  }

  // Breadth first from `start` along `next`, through vertices that `enter` accepts. Fills origin
  // with the seed that reached each vertex: the first by name among the nearest.
  template <typename Next, typename Enter>
  std::vector<int> Reach(const std::vector<int>& start, Next next, Enter enter) const {
    std::vector<int> origin(graph_.size(), -1);
    std::vector<int> frontier = start;
    for (int v : start) origin[v] = v;
    auto by_origin = [&](int a, int b) {
      return std::tie(graph_.name(origin[a]), graph_.name(a)) <
             std::tie(graph_.name(origin[b]), graph_.name(b));
    };
    std::vector<bool> seen(graph_.size(), false);
    while (!frontier.empty()) {
      std::sort(frontier.begin(), frontier.end(), by_origin);
      std::vector<int> following;
      for (int v : frontier) {
        for (int w : next(v)) {
          if (w < 0 || seen[w] || !enter(w)) continue;
          seen[w] = true;
          origin[w] = origin[v];
          following.push_back(w);
        }
      }
      frontier = std::move(following);
    }
    return origin;
  }

  void Between() {
    std::vector<int> seeds;
    for (int v : graph_.by_name()) {
      if (low_paint_[v]) seeds.push_back(v);
    }
    auto soft = [this](int v) { return Open(v) && IsSoft(v); };
    std::vector<int> before = Reach(
        seeds, [this](int v) { return graph_[v].users; }, soft);
    std::vector<int> after = Reach(
        seeds, [this](int v) { return graph_.MainProducers(v); },
        [&](int v) { return soft(v) && before[v] >= 0; });
    for (int v = 0; v < graph_.size(); ++v) {
      if (!Open(v) || before[v] < 0 || after[v] < 0) continue;
      PaintLow(v, Concat("between ", graph_.name(before[v]), " and ", graph_.name(after[v])));
    }
  }

  // Repaints in rounds until nothing changes. `why(v)` says why v is to be repainted, or "", by the
  // paint of v and its neighbours: each round asks from one frozen state, the first all vertices,
  // the later ones the neighbours of what was just repainted.
  template <typename Why, typename Apply>
  void FixedPoint(Why why, Apply apply) {
    std::vector<int> asked(graph_.size());
    std::iota(asked.begin(), asked.end(), 0);
    while (!asked.empty()) {
      std::vector<std::pair<int, std::string>> found;
      for (int v : asked) {
        if (std::string reason = why(v); !reason.empty()) found.emplace_back(v, std::move(reason));
      }
      asked.clear();
      for (const auto& [v, reason] : found) {
        apply(v, reason);
        for (int p : graph_.MainProducers(v)) {
          if (p >= 0) asked.push_back(p);
        }
        asked.insert(asked.end(), graph_[v].users.begin(), graph_[v].users.end());
      }
      std::sort(asked.begin(), asked.end());
      asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
    }
  }

  // The first by name of the 16-bit vertices among `candidates`, or -1.
  int FirstLow(const std::vector<int>& candidates) const {
    int first = -1;
    for (int v : candidates) {
      if (v < 0 || !low_paint_[v]) continue;
      if (first < 0 || graph_.name(v) < graph_.name(first)) first = v;
    }
    return first;
  }

  void Follow() {
    FixedPoint(
        [this](int v) -> std::string {
          if (!Open(v) || ClassOf(v) != AmpClass::kInfer) return "";
          std::vector<int> producers = graph_.MainProducers(v);
          int leader = FirstLow(producers);
          bool all = std::all_of(producers.begin(), producers.end(), [this](int p) {
            return p >= 0 && (low_paint_[p] || IsParameterOrConstant(p));
          });
          return leader >= 0 && all ? Concat("follows ", graph_.name(leader)) : "";
        },
        [this](int v, const std::string& why) { PaintLow(v, why); });
  }

  // Whether every main operand is 16-bit already (constants are converted at compile time).
  bool FedByLow(int v) const {
    std::vector<int> producers = graph_.MainProducers(v);
    return FirstLow(producers) >= 0 &&
           std::all_of(producers.begin(), producers.end(), [this](int p) {
             return p >= 0 && (low_paint_[p] || IsConstant(*graph_[p].node));
           });
  }

  bool ReadByLowOnly(int v) const {
    const AmpVertex& vertex = graph_[v];
    return !vertex.has_f32_user && !vertex.users.empty() &&
           std::all_of(vertex.users.begin(), vertex.users.end(),
                       [this](int u) { return IsPaintable(u) && low_paint_[u]; });
  }

  void Clear() {
    FixedPoint(
        [this](int v) -> std::string {
          if (!Open(v) || ClassOf(v) != AmpClass::kClear) return "";
          if (FedByLow(v)) {
            int leader = FirstLow(graph_.MainProducers(v));
            return Concat("dtype does not matter, follows ", graph_.name(leader));
          }
          if (!ReadByLowOnly(v)) return "";
          return Concat("dtype does not matter, read by ", graph_.name(FirstLow(graph_[v].users)));
        },
        [this](int v, const std::string& why) {
          PaintLow(v, why);
          by_clear_[v] = true;
        });
  }

  // Why a 16-bit vertex has to turn back, or "".
  std::string GroupProblem(int v) const {
    std::vector<int> ports = SameDTypePorts(*graph_[v].node);
    if (ports.size() >= 2) {
      for (int port : ports) {
        int p = graph_[v].producers[port];
        if (p >= 0 && (low_paint_[p] || IsParameterOrConstant(p))) continue;
        return Concat("f32: its operands share a dtype and ",
                      graph_[v].node->input(port).node->name(), " is f32");
      }
    }
    if (by_clear_[v] && !FedByLow(v) && !ReadByLowOnly(v)) return "f32: dtype does not matter";
    return RunningSumProblem(v);
  }

  // Parameters aside, also as moved.
  bool IsComputedInF32(int p) const {
    if (p == AmpGraph::kFixedF32) return true;
    while (p >= 0 && ClassOf(p) == AmpClass::kClear && graph_.MainProducers(p).size() == 1) {
      if (low_paint_[p]) return false;
      p = graph_.MainProducers(p)[0];
    }
    return p >= 0 && !low_paint_[p] && !IsParameterOrConstant(p);
  }

  // Of clear vertices through which a running sum is reached: the sum, the first by name; else -1.
  void FindWaysToSums() {
    sum_behind_.assign(graph_.size(), -1);
    for (int sum : graph_.by_name()) {
      if (!IsPaintable(sum) || !graph_[sum].node->op().amp.running_sum) continue;
      std::vector<int> stack = {sum};
      while (!stack.empty()) {
        const int v = stack.back();
        stack.pop_back();
        for (int p : graph_.MainProducers(v)) {
          if (p < 0 || sum_behind_[p] >= 0 || ClassOf(p) != AmpClass::kClear) continue;
          sum_behind_[p] = sum;
          stack.push_back(p);
        }
      }
    }
  }

  // Why a 16-bit sum would round what is added up in f32, or what moves such a value to a sum; or "".
  std::string RunningSumProblem(int v) const {
    const ir::Node& node = *graph_[v].node;
    if (node.op().amp.running_sum) {
      for (int port = 0; port < node.num_inputs(); ++port) {
        if (node.input_type(port).shape == node.output_type().shape &&
            IsComputedInF32(graph_[v].producers[static_cast<size_t>(port)])) {
          return Concat("f32: adds to ", LookThroughAmpCasts(node.input(port)).node->name(),
                        ", which is f32: a sum that runs on is not rounded at each step");
        }
      }
      return "";
    }
    if (sum_behind_[v] < 0) return "";
    const std::vector<int> producers = graph_.MainProducers(v);
    const bool all = std::all_of(producers.begin(), producers.end(),
                                 [this](int p) { return IsComputedInF32(p); });
    return all ? Concat("f32: moves what is f32 to the sum ", graph_.name(sum_behind_[v])) : "";
  }

  void Groups() {
    FindWaysToSums();
    FixedPoint(
        [this](int v) -> std::string {
          const bool stays = ClassOf(v) == AmpClass::kAllow || graph_[v].choice.forced;
          return !low_paint_[v] || stays ? "" : GroupProblem(v);
        },
        [this](int v, const std::string& why) {
          low_paint_[v] = false;
          reasons_[v] = why;
        });
  }

  void Observers() {
    for (int v = 0; v < graph_.size(); ++v) {
      if (graph_[v].role != AmpRole::kObserver) continue;
      std::vector<int> producers = graph_.MainProducers(v);
      bool exact = std::all_of(producers.begin(), producers.end(), [this](int p) {
        return p >= 0 &&
               (low_paint_[p] || (IsConstant(*graph_[p].node) && IsExactIn(*graph_[p].node, low_)));
      });
      int leader = FirstLow(producers);
      if (exact && leader >= 0 && ClassOf(v) != AmpClass::kDeny && missing_kernel_[v].empty()) {
        PaintLow(v, Concat("reads ", graph_.name(leader), " as it is"));
      }
    }
  }

  std::string WhyF32(int v) const {
    if (Denied(v)) return denied_[v];
    if (!reasons_[v].empty()) return reasons_[v];
    if (!missing_kernel_[v].empty()) return missing_kernel_[v];
    if (ClassOf(v) == AmpClass::kClear) return "f32: dtype does not matter, no 16-bit neighbours";
    return "f32: not between allowed nodes";
  }

  Painting Result() {
    Painting painting;
    for (int v = 0; v < graph_.size(); ++v) {
      const AmpVertex& vertex = graph_[v];
      ir::AmpDecision decision;
      decision.amp_class = ClassOf(v);
      switch (vertex.role) {
        case AmpRole::kPaintable:
        case AmpRole::kObserver:
          decision.decided = true;
          decision.dtype = low_paint_[v] ? low_ : DType::kF32;
          decision.reason = low_paint_[v] ? reasons_[v] : WhyF32(v);
          decision.raised_from = vertex.raised_from;
          break;
        case AmpRole::kSource:
          decision.decided = true;
          decision.reason = IsCast(*vertex.node) ? Concat("f32: a parameter kept in ",
                                                          Name(vertex.node->input_type(0).dtype),
                                                          ", cast where it is read in f32")
                                                 : "f32: a source, cast where it is read in 16 bit";
          break;
        case AmpRole::kOpaque:
          decision.reason = WhyLeftAlone(v);
          break;
      }
      painting.decisions.push_back(std::move(decision));
    }
    painting.notes = std::move(notes_);
    return painting;
  }

  const AmpGraph& graph_;
  const ValueRanges& ranges_;
  const DType low_;
  const ir::Target& target_;
  std::vector<bool> low_paint_;
  std::vector<bool> by_clear_;               // turned 16-bit by step 5
  std::vector<int> sum_behind_;              // see FindWaysToSums
  std::vector<std::string> reasons_;         // of 16-bit vertices, and of those that turned back
  std::vector<std::string> denied_;          // why, or ""
  std::vector<std::string> missing_kernel_;  // why not eligible, or ""
  std::vector<std::string> notes_;
};

}  // namespace

Painting Paint(const AmpGraph& graph, const ValueRanges& ranges, DType low,
               const ir::Target& target) {
  return Painter(graph, ranges, low, target).Run();
}

}  // namespace halftone::passes
