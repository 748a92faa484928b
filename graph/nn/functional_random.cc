#include "halftone/core/status.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/trace.h"

namespace halftone::nn {

Value dropout(const Value& x, double p, Loc loc) {
  internal::Trace* trace = internal::Trace::Current();
  if (trace == nullptr) return {};
  if (!(p >= 0 && p < 1)) {
    return Fail(loc, InvalidArgument("dropout: p is ", p, "; expected 0 <= p < 1"));
  }
  // The ordinal advances in any mode and for any p: a change of one layer moves no other's masks.
  const int64_t seed = trace->NextRandomSeed();
  if (!trace->module_training() || p == 0) return x;
  return Op("dropout", {x}, {{"p", p}, {"seed", seed}}, loc);
}

}  // namespace halftone::nn
