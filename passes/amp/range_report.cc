#include "halftone/passes/amp/range_report.h"

#include <algorithm>
#include <utility>

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::amp {
namespace {

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

bool IsLost(const Range& range) {
  return range.overflows > 0 || 2 * range.underflows > range.elements - range.zeros;
}

}  // namespace

void RangeReport::Add(const ir::Value& value, const Tensor& tensor) {
  if (!IsFloat(tensor.dtype())) return;
  const std::string name = value.ToString();
  const auto [at, is_new] = index_.emplace(name, rows_.size());
  if (is_new) rows_.push_back({name, value.node->name(), value.node->op().name, {}});
  rows_[at->second].range.Add(tensor);
}

std::vector<RangeRow> RangeReport::Rows() const {
  std::vector<RangeRow> rows = rows_;
  const auto key = [](const RangeRow& row) {
    const Range& r = row.range;
    return std::pair(Share(r.overflows, r.elements), Share(r.underflows, r.elements));
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const RangeRow& a, const RangeRow& b) { return key(a) > key(b); });
  return rows;
}

Policy RangeReport::Propose(const ir::Graph& graph) const {
  Policy policy{.dtype = DType::kF16};
  const auto range_of = [this](const ir::Value& value) -> const Range* {
    const auto at = index_.find(value.ToString());
    if (at == index_.end() || rows_[at->second].op != value.node->op().name) return nullptr;
    return &rows_[at->second].range;
  };
  const auto gives_lost = [&](const ir::Node& node) {
    for (int i = 0; i < node.num_outputs(); ++i) {
      const Range* range = range_of(node.output(i));
      if (range != nullptr && IsLost(*range)) return true;
    }
    return false;
  };
  const auto would_cast_lost = [&](const ir::Node& node) {
    const ir::AmpClass own = node.op().amp.f16;
    return std::any_of(node.inputs().begin(), node.inputs().end(), [&](const ir::Value& input) {
      const Range* range = range_of(input);
      if (range == nullptr || range->overflows == 0) return false;
      return own == ir::AmpClass::kAllow ||
             (passes::IsSource(*input.node) && own != ir::AmpClass::kDeny);
    });
  };
  for (const auto& node : graph.nodes()) {
    if (passes::IsSource(*node) || !(gives_lost(*node) || would_cast_lost(*node))) continue;
    policy.deny.push_back(node->path());
  }
  return policy;
}

}  // namespace halftone::amp
