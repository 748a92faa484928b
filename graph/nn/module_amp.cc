#include "halftone/graph/nn/module_amp.h"

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/op.h"

namespace halftone::nn::internal {
namespace {

// The cast stays where it changes no type yet: insert-amp-casts takes it for the user's word.
Value KeptWide(const Value& x, Loc loc) {
  const bool widens = x.valid() && IsFloat(x.dtype()) && x.dtype() != DType::kF64;
  return widens ? cast(x, DType::kF32, loc) : x;
}

}  // namespace

Values AmpOperands(const Module& module, const Values& in, Loc loc) {
  std::vector<Value> operands = in.vector();
  for (const int i : module.amp().fp32_inputs) {
    if (i >= static_cast<int>(operands.size())) {
      Fail(loc, InvalidArgument(module.description(), ": set_amp names input ", i,
                                "; the call has ", operands.size()));
      continue;
    }
    operands[static_cast<size_t>(i)] = KeptWide(operands[static_cast<size_t>(i)], loc);
  }
  return Values(std::move(operands));
}

Values AmpResults(const Module& module, const Values& out, Loc loc) {
  if (!module.amp().fp32_outputs) return out;
  std::vector<Value> results;
  for (const Value& value : out) results.push_back(KeptWide(value, loc));
  return Values(std::move(results));
}

}  // namespace halftone::nn::internal
