#include "halftone/graph/ops/support/magnified.h"

#include <algorithm>
#include <numeric>

#include "halftone/graph/ir/graph.h"

namespace halftone::ops {
namespace {

using ir::AmpClass;
using ir::AmpMagnified;
using Ranges = std::vector<ir::ValueRange>;

AmpClass ClassFor(const ir::OpRecord& op, DType low) {
  return low == DType::kF16 ? op.amp.f16 : op.amp.bf16;
}

// The reduction, or the op that is denied for its range, of which `divisor` is made: seen through ops
// that move or select values, and through arithmetic (sqrt(sum + eps)). Null if there is none near.
const ir::Node* SumBehind(ir::Value divisor, DType low) {
  // Casts do not count: with those of insert-amp-casts the answer is the same.
  const auto made_by = [](ir::Value value) {
    while (value.node->op().name == "cast") value = value.node->input(0);
    return value.node;
  };
  // More than any norm's formula has; keeps compile time proportional to the nodes.
  constexpr size_t kNear = 16;
  std::vector<const ir::Node*> seen = {made_by(divisor)};
  for (size_t i = 0; i < seen.size(); ++i) {
    const ir::Node& node = *seen[i];
    if (node.num_inputs() == 0) continue;
    const AmpClass amp_class = ClassFor(node.op(), low);
    if (amp_class != AmpClass::kClear) {
      if (node.op().fusion == ir::FusionClass::kReduction || amp_class == AmpClass::kDeny) {
        return &node;
      }
      const bool arithmetic =
          node.op().fusion == ir::FusionClass::kElementwise && !node.op().amp.accumulates_in_f32;
      if (!arithmetic) continue;
    }
    for (ir::Value input : node.inputs()) {
      const ir::Node* maker = made_by(input);
      const bool is_new = std::find(seen.begin(), seen.end(), maker) == seen.end();
      if (is_new && seen.size() < kNear && IsFloat(input.dtype())) seen.push_back(maker);
    }
  }
  return nullptr;
}

std::optional<AmpMagnified> MagnifiedDivisor(const ir::Node& node, DType low, const Ranges& in,
                                             int divisor) {
  const bool f16 = low == DType::kF16;
  if (const ir::Node* sum = SumBehind(node.input(divisor), low)) {
    return AmpMagnified{
        {divisor},
        Concat("divides by the result of ", sum->Label(), ", which may be large or vanish"),
        f16};
  }
  if (!f16 || in[static_cast<size_t>(divisor)].excludes_zero()) return std::nullopt;
  return AmpMagnified{
      {divisor}, "divides by what may be near 0, where f16 has few digits or none", true};
}

std::optional<AmpMagnified> MagnifiedDifference(const ir::ValueRange& a, const ir::ValueRange& b) {
  if (!DifferenceMayVanish(a, b)) return std::nullopt;
  return AmpMagnified{{0, 1}, "a small difference consists of the rounding of its operands"};
}

}  // namespace

ir::AmpTrait Magnifying(ir::AmpTrait amp, Pole pole) {
  amp.magnifies = [reason = amp.reason, pole](const ir::Node& node, DType low, const Ranges&) {
    AmpMagnified magnified{std::vector<int>(static_cast<size_t>(node.num_inputs())), reason,
                           pole == Pole::kAtZero && low == DType::kF16};
    std::iota(magnified.inputs.begin(), magnified.inputs.end(), 0);
    return std::make_optional(std::move(magnified));
  };
  return amp;
}

ir::AmpTrait Dividing(ir::AmpTrait amp, int divisor) {
  amp.magnifies = [divisor](const ir::Node& node, DType low, const Ranges& in) {
    return MagnifiedDivisor(node, low, in, divisor);
  };
  return amp;
}

ir::AmpTrait CancellingSum(ir::AmpTrait amp) {
  amp.magnifies = [](const ir::Node&, DType, const Ranges& in) {
    return MagnifiedDifference(in[0], -in[1]);
  };
  return amp;
}

ir::AmpTrait CancellingDifference(ir::AmpTrait amp) {
  amp.magnifies = [](const ir::Node&, DType, const Ranges& in) {
    return MagnifiedDifference(in[0], in[1]);
  };
  return amp;
}

}  // namespace halftone::ops
