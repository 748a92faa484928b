// AMP traits of ops that enlarge the rounding of their operands (ir::AmpMagnified).
#pragma once

#include "halftone/graph/ir/op.h"

namespace halftone::ops {

enum class Pole : uint8_t { kNone, kAtZero };

// The roundings of all operands, for the reason that `amp` gives.
ir::AmpTrait Magnifying(ir::AmpTrait amp, Pole pole = Pole::kNone);
// That of operand `divisor`, where it is made of a sum (which is rounded before the quotient is, and
// may be large or vanish), and in f16 unless its range excludes 0.
ir::AmpTrait Dividing(ir::AmpTrait amp, int divisor);
// Those of both operands, where a + b, or a - b, may be near 0 by what bounds a and b.
ir::AmpTrait CancellingSum(ir::AmpTrait amp);
ir::AmpTrait CancellingDifference(ir::AmpTrait amp);

}  // namespace halftone::ops
