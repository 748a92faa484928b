#include <string>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/functional_formula.h"
#include "halftone/graph/ops/support/nn.h"

namespace halftone::nn {
namespace {

// Whether x is [T,B,I] and the weights of the gates [..,I]; if not, an error of the trace.
bool CheckSteps(const char* op, const Value& x, const Value& weight_ih, Loc loc) {
  if (!x.valid() || !weight_ih.valid() || !internal::CheckFloats(op, x, loc)) return false;
  if (x.rank() != 3) {
    Fail(loc, InvalidArgument(op, ": x is ", Name(x.dtype()), x.shape(), "; expected [T,B,I]"));
    return false;
  }
  if (weight_ih.rank() != 2 || weight_ih.shape()[1] != x.shape()[2]) {
    Fail(loc, InvalidArgument(op, ": weight_ih is ", Name(weight_ih.dtype()), weight_ih.shape(),
                              "; expected a column for each of the ", x.shape()[2], " of x ",
                              x.shape()));
    return false;
  }
  return true;
}

// h after the last step.
Value LastState(const Value& h, bool reverse, Loc loc) {
  if (!h.valid()) return h;
  const int64_t at = reverse ? 0 : h.shape()[0] - 1;
  return squeeze(slice(h, 0, at, at + 1, 1, loc), 0, loc);
}

// To f32, or f64 where `x` is that.
Value CastBeside(const Value& value, const Value& x, Loc loc) {
  return value.valid() ? internal::CastTo(value, ops::WideDType(x.dtype()), loc) : value;
}

}  // namespace

Values lstm(const Value& x, const Value& h0, const Value& c0, const Value& weight_ih,
            const Value& weight_hh, const OptionalValue& bias_ih, const OptionalValue& bias_hh,
            const OptionalValue& weight_hr, const RecurrenceOptions& options, Loc loc) {
  const Values nothing{Value(), Value(), Value()};
  if (!CheckSteps("lstm", x, weight_ih, loc)) return nothing;
  const internal::At at(loc);
  const bool two = bias_ih.has_value() && bias_hh.has_value();
  const OptionalValue bias = two                   ? at(bias_ih.value()) + at(bias_hh.value())
                             : bias_ih.has_value() ? bias_ih
                                                   : bias_hh;
  const Value gates = linear(x, weight_ih, bias, loc);
  if (!gates.valid()) return nothing;
  std::vector<Value> in = {gates, weight_hh, h0};
  if (weight_hr.has_value()) in.push_back(weight_hr.value());
  in = internal::PromoteAll(in, loc);
  in.insert(in.begin() + 3, CastBeside(c0, in[0], loc));
  const Values out = Ops("lstm", in, {{"reverse", options.reverse}}, loc);
  const Value& h = out.vector()[0];
  if (!h.valid()) return nothing;
  return {h, LastState(h, options.reverse, loc), out.vector()[1]};
}

Values gru(const Value& x, const Value& h0, const Value& weight_ih, const Value& weight_hh,
           const OptionalValue& bias_ih, const OptionalValue& bias_hh,
           const RecurrenceOptions& options, Loc loc) {
  const Values nothing{Value(), Value()};
  if (!CheckSteps("gru", x, weight_ih, loc)) return nothing;
  const Value gates = linear(x, weight_ih, bias_ih, loc);
  if (!gates.valid()) return nothing;
  std::vector<Value> in = internal::PromoteAll({gates, weight_hh, h0}, loc);
  if (bias_hh.has_value()) in.push_back(CastBeside(bias_hh.value(), in[0], loc));
  const Value h = Ops("gru", in, {{"reverse", options.reverse}}, loc).vector()[0];
  if (!h.valid()) return nothing;
  return {h, LastState(h, options.reverse, loc)};
}

}  // namespace halftone::nn
