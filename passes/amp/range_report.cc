#include "halftone/passes/amp/range_report.h"

#include <algorithm>
#include <cmath>

namespace halftone::amp {
namespace {

// Halfway from the largest f16, 65504, to the next power of two, and to 2^-24, the smallest: a tie
// goes to the even side, which is infinity and 0.
constexpr double kOverflow = 65520, kUnderflow = 1.0 / (1 << 25);

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
  Range& range = rows_[at->second].range;
  range.elements += tensor.num_elements();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double magnitude = std::fabs(tensor.at(i));
    if (!std::isfinite(magnitude)) {
      ++range.non_finite;
      continue;
    }
    range.largest = std::max(range.largest, magnitude);
    if (magnitude == 0) ++range.zeros;
    if (magnitude > 0) range.smallest = std::min(range.smallest, magnitude);
    if (magnitude >= kOverflow) ++range.overflows;
    if (magnitude > 0 && magnitude <= kUnderflow) ++range.underflows;
  }
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
