#include "halftone/graph/nn/functional_gradient.h"

#include <algorithm>

#include "halftone/graph/nn/handles.h"
#include "halftone/graph/nn/trace.h"

namespace halftone::nn {

void Value::backward(Loc loc) const { backward(BackwardOptions{}, loc); }

void Value::backward(const BackwardOptions& options, Loc loc) const {
  internal::Trace* trace = internal::Trace::Current();
  if (trace == nullptr || !trace->training()) return;
  ir::Expr loss = trace->Unwrap(*this, loc);
  if (!loss.valid()) return;
  if (!IsFloat(loss.dtype()) || loss.shape().num_elements() != 1) {
    trace->Fail(loc, InvalidArgument("backward: the loss is ", loss.type().ToString(),
                                     "; expected a floating-point scalar"));
    return;
  }
  const internal::GraphInfo& info = trace->info();
  const std::string& scaler = options.scaler.empty() ? info.default_scaler : options.scaler;
  if (!scaler.empty() &&
      std::find(info.scalers.begin(), info.scalers.end(), scaler) == info.scalers.end()) {
    trace->Fail(loc, NotFound("backward: this graph has no grad scaler \"", scaler, "\""));
    return;
  }
  trace->At(loc);
  if (loss.shape().rank() != 0) {
    loss = trace->builder().Op("reshape", {loss}, {{"shape", std::vector<int64_t>{}}});
  }
  trace->builder().Root("backward", {loss}, {{"scaler", scaler}});
  trace->note_backward();
}

}  // namespace halftone::nn
