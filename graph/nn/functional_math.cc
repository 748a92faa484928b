#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/trace.h"

namespace halftone::nn {

Value where(const Value& condition, Located a, Located b, Loc loc) {
  const std::vector<Value> ab = internal::Operands("where", a, b, loc);
  return Op("where", {condition, ab[0], ab[1]}, {}, loc);
}

Value masked_fill(const Value& x, const Value& mask, double value, Loc loc) {
  return where(mask, Located(value, loc), Located(x, loc), loc);
}

Value constant(const Tensor& value, Loc loc) {
  internal::Trace* trace = internal::Trace::Current();
  if (trace == nullptr) return {};
  if (!value.defined()) {
    return Fail(loc, InvalidArgument("constant: an undefined tensor; expected one with a shape"));
  }
  trace->At(loc);
  return trace->Constant(value);
}

Value cast(const Value& x, DType dtype, Loc loc) { return Op("cast", {x}, {{"to", dtype}}, loc); }

}  // namespace halftone::nn
