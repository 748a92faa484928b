#include "halftone/passes/amp/range_report.h"

#include <algorithm>
#include <utility>

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
  for (const RangeRow& row : rows_) {
    const ir::Node* node = graph.FindNode(row.node);
    if (node == nullptr || node->op().name != row.op || !IsLost(row.range)) continue;
    if (policy.deny.empty() || policy.deny.back() != node->path()) {
      policy.deny.push_back(node->path());
    }
  }
  return policy;
}

}  // namespace halftone::amp
