#include "halftone/passes/layout/merge_copies.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "halftone/passes/layout/axis_factors.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ir::Layout;
using Moves = std::vector<const ir::Node*>;

// Those into blocks of channels and out of them are made later, and stay.
bool OnlyReorders(const ir::Node& node) {
  if (!IsOp(node, "relayout") && !IsOp(node, "transpose") && !IsOp(node, "reshape")) return false;
  return node.input_type(0).layout != Layout::kChannelBlocks &&
         node.output_type().layout != Layout::kChannelBlocks;
}

// A graph's text may have any number of moves in a row, and each is looked at as the end of one.
constexpr size_t kMostMoves = 16;

// What leads to `end` and is read by nothing else, in order; `end` is the last.
Moves MovesTo(const ir::Node& end, const ir::UseMap& uses) {
  Moves moves = {&end};
  while (moves.size() < kMostMoves) {
    const ir::Value v = moves.back()->input(0);
    if (!OnlyReorders(*v.node) || uses.is_output(v) || uses.uses(v).size() != 1) break;
    moves.push_back(v.node);
  }
  std::reverse(moves.begin(), moves.end());
  return moves;
}

bool InOrder(const AxisFactors::Permutation& p) { return p.perm.size() <= 1; }

// The bytes of `x` moved by `p` as `type`.
ir::Value Move(ir::Builder& b, ir::Value x, const AxisFactors::Permutation& p,
               const ir::ValueType& type) {
  if (InOrder(p) && x.type() == type) return x;
  ir::Expr v = b.Wrap(x);
  const auto transpose = [&](std::vector<int64_t> perm) {
    v = b.Op("transpose", {v}, {{"perm", std::move(perm)}});
  };
  const auto reshape = [&](const std::vector<int64_t>& shape) {
    if (v.valid() && v.shape() != Shape(shape)) v = b.Op("reshape", {v}, {{"shape", shape}});
  };
  if (x.type().layout == Layout::kChannelsLast) transpose({0, 2, 3, 1});
  if (!InOrder(p)) {
    reshape(p.shape);
    transpose(p.perm);
  }
  const Shape& s = type.shape;
  if (type.layout == Layout::kPlain) {
    reshape(std::vector<int64_t>(s.dims().begin(), s.dims().end()));
    return v.value();
  }
  reshape({s[0], s[2], s[3], s[1]});
  transpose({0, 3, 1, 2});
  if (v.valid()) v.value().node->mutable_output_types()[0].layout = Layout::kChannelsLast;
  return v.value();
}

class MergeCopies : public Pass {
 public:
  const char* name() const override { return "merge-copies"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const ir::UseMap uses(graph);
    Replacements replacements;
    std::set<const ir::Node*> merged;
    const std::vector<ir::Node*> nodes = Snapshot(graph);
    bool changed = false;
    // The last of a row first, which has the longest way to it.
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      const ir::Node& end = **it;
      if (!OnlyReorders(end) || merged.contains(&end) || end.output_type().num_elements() == 0)
        continue;
      const Moves moves = MovesTo(end, uses);
      for (size_t first = 0; first < moves.size(); ++first) {
        const auto p = Shorter(moves, first, context);
        if (!p.has_value()) continue;
        ir::Builder b = BuilderLike(end, name());
        const ir::Value y = Move(b, moves[first]->input(0), *p, end.output_type());
        HT_RETURN_IF_ERROR(b.status());
        replacements.Replace(end.output(), y);
        merged.insert(moves.begin() + static_cast<std::ptrdiff_t>(first), moves.end());
        changed = true;
        break;
      }
    }
    replacements.Finish(graph);
    return changed;
  }

 private:
  // How the moves from `first` on are one copy or none, where that is fewer than they are.
  static std::optional<AxisFactors::Permutation> Shorter(const Moves& moves, size_t first,
                                                         PassContext& context) {
    const auto begin = moves.begin() + static_cast<std::ptrdiff_t>(first);
    const auto before =
        std::count_if(begin, moves.end(), [](const ir::Node* n) { return !IsStorageAlias(*n); });
    AxisFactors factors(moves[first]->input_type(0));
    if (before == 0 ||
        !std::all_of(begin, moves.end(), [&](const ir::Node* n) { return factors.Follow(*n); })) {
      return std::nullopt;
    }
    AxisFactors::Permutation p = factors.OfStorage();
    const int64_t after = InOrder(p) ? 0 : 1;
    if (after >= before || static_cast<int>(p.shape.size()) > kMaxRank) return std::nullopt;
    context.stats["copies_before"] += before;
    context.stats["copies_after"] += after;
    return p;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeMergeCopies() { return std::make_unique<MergeCopies>(); }

}  // namespace halftone::passes
