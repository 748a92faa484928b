#include <algorithm>

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/handles.h"
#include "halftone/graph/nn/op.h"
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
  for (const std::string& optimizer : options.optimizers) {
    if (std::find(info.optimizers.begin(), info.optimizers.end(), optimizer) ==
        info.optimizers.end()) {
      trace->Fail(loc, NotFound("backward: this graph has no optimizer \"", optimizer, "\""));
      return;
    }
  }
  std::vector<std::string> optimizers = options.optimizers;
  std::sort(optimizers.begin(), optimizers.end());
  optimizers.erase(std::unique(optimizers.begin(), optimizers.end()), optimizers.end());
  trace->At(loc);
  if (loss.shape().rank() != 0) {
    loss = trace->builder().Op("reshape", {loss}, {{"shape", std::vector<int64_t>{}}});
  }
  trace->builder().Root("backward", {loss}, {{"scaler", scaler}, {"optimizers", optimizers}});
  trace->note_backward();
}

Values gradients(const Value& loss, const std::vector<Value>& wrt, Loc loc) {
  std::vector<Value> inputs = {loss};
  inputs.insert(inputs.end(), wrt.begin(), wrt.end());
  std::string scaler;
  if (internal::Trace* trace = internal::Trace::Current()) {
    const internal::GraphInfo& info = trace->info();
    scaler = info.default_scaler;
    if (scaler.empty() && !info.scalers.empty()) scaler = info.scalers[0];
    if (!scaler.empty()) trace->note_reads_scale();
  }
  return Ops("gradient", inputs, {{"scaler", scaler}}, loc);
}

Value detach(const Value& x, Loc loc) { return Op("detach", {x}, {}, loc); }

namespace {

Value Marked(const char* function, const Value& x, int8_t request, Loc loc) {
  internal::Trace* const trace = internal::Trace::Current();
  if (trace == nullptr) return x;
  const ir::Expr expr = trace->Unwrap(x, loc);
  if (!expr.valid()) return x;
  ir::Node& node = *expr.value().node;
  if (node.num_inputs() == 0) {
    return Fail(loc, InvalidArgument(function, ": %", node.name(), " is computed by nothing: mark ",
                                     "what is computed from it"));
  }
  node.amp_request = request;
  return x;
}

}  // namespace

Value amp_white(const Value& x, Loc loc) { return Marked("amp_white", x, 1, loc); }
Value amp_black(const Value& x, Loc loc) { return Marked("amp_black", x, -1, loc); }

}  // namespace halftone::nn
