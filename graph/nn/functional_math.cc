#include "halftone/graph/nn/functional_math.h"

#include "halftone/graph/nn/trace.h"

namespace halftone::nn {

Value constant(const Tensor& value, Loc loc) {
  internal::Trace* trace = internal::Trace::Current();
  if (trace == nullptr) return {};
  if (!value.defined()) {
    return internal::Fail(
        loc, InvalidArgument("constant: an undefined tensor; expected one with a shape"));
  }
  trace->At(loc);
  return trace->Constant(value);
}

}  // namespace halftone::nn
