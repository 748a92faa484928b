#include "halftone/graph/nn/op.h"

#include <cmath>

#include "halftone/graph/nn/trace.h"

namespace halftone::nn {

Values Ops(const std::string& name, const std::vector<Value>& inputs, ir::Attributes attrs,
           Loc loc) {
  internal::Trace* trace = internal::Trace::Current();
  if (trace == nullptr) return Values(std::vector<Value>(1));
  std::vector<ir::Expr> operands;
  for (const Value& input : inputs) operands.push_back(trace->Unwrap(input, loc));
  trace->At(loc);
  std::vector<Value> outputs;
  for (const ir::Expr& out : trace->builder().Make(name, operands, std::move(attrs))) {
    outputs.push_back(trace->Wrap(out));
  }
  return Values(std::move(outputs));
}

Value Op(const std::string& name, const std::vector<Value>& inputs, ir::Attributes attrs, Loc loc) {
  return Ops(name, inputs, std::move(attrs), loc).vector().at(0);
}

Value Fail(Loc loc, absl::Status status) {
  if (internal::Trace* trace = internal::Trace::Current()) trace->Fail(loc, std::move(status));
  return {};
}

namespace internal {
namespace {

// Whether a whole number is one of the values of an integer type or bool.
bool Fits(double number, DType dtype) {
  switch (dtype) {
    case DType::kI64:
      return number >= -0x1p63 && number < 0x1p63;
    case DType::kI32:
      return number >= -0x1p31 && number < 0x1p31;
    case DType::kU8:
      return number >= 0 && number < 256;
    case DType::kBool:
      return number == 0 || number == 1;
    default:
      return true;
  }
}

// The constant that `number` stands for beside a value of type `other`. A whole number takes an
// integer type, in which it must not wrap.
Value Number(Trace& trace, const char* op, double number, DType other, Loc loc) {
  const bool whole = std::floor(number) == number;  // infinities too
  if (whole && !Fits(number, other)) {
    return Fail(loc, InvalidArgument(op, ": the number ", number,
                                     " does not fit the other operand's ", "type, ", Name(other),
                                     "; expected one that does, or a cast of ", "that operand"));
  }
  trace.At(loc);
  return trace.Wrap(trace.builder().Scalar(IsFloat(other) || whole ? other : DType::kF32, number));
}

}  // namespace

Value CastTo(const Value& x, DType to, Loc loc) {
  Trace* trace = Trace::Current();
  if (trace == nullptr) return x;
  trace->At(loc);
  const ir::Expr operand = trace->Unwrap(x, loc);
  return trace->Wrap(operand.valid() ? trace->builder().Cast(operand, to) : operand);
}

std::vector<Value> PromoteAll(const std::vector<Value>& inputs, Loc loc) {
  Trace* trace = Trace::Current();
  if (trace == nullptr || inputs.empty()) return inputs;
  DType common = inputs[0].dtype();
  for (const Value& input : inputs) common = Promote(common, input.dtype());
  std::vector<Value> promoted;
  for (const Value& input : inputs) promoted.push_back(CastTo(input, common, loc));
  return promoted;
}

Value Promoted(const std::string& name, const std::vector<Value>& inputs, ir::Attributes attrs,
               Loc loc) {
  return Op(name, PromoteAll(inputs, loc), std::move(attrs), loc);
}

std::vector<Value> Present(const std::vector<OptionalValue>& inputs) {
  std::vector<Value> present;
  for (const OptionalValue& input : inputs) {
    if (input.has_value()) present.push_back(input.value());
  }
  return present;
}

std::vector<Value> Operands(const char* op, const Located& a, const Located& b, Loc loc) {
  Trace* trace = Trace::Current();
  // After an error the operands are poison; a constant would only add noise.
  if (trace == nullptr || !trace->builder().status().ok()) return std::vector<Value>(2);
  if (a.is_number() && b.is_number()) {
    Fail(loc, InvalidArgument(op, ": both operands are numbers; expected at least one value, for ",
                              "example constant() of one of them"));
    return std::vector<Value>(2);
  }
  const DType a_type = a.is_number() ? b.value().dtype() : a.value().dtype();
  const DType b_type = b.is_number() ? a.value().dtype() : b.value().dtype();
  return PromoteAll({a.is_number() ? Number(*trace, op, a.number(), a_type, loc) : a.value(),
                     b.is_number() ? Number(*trace, op, b.number(), b_type, loc) : b.value()},
                    loc);
}

Value Operator(const char* name, const Located& a, const Located& b, Loc loc) {
  return Op(name, Operands(name, a, b, loc), {}, loc);
}

std::optional<int64_t> FindAxis(const char* op, const Value& x, int64_t axis, Loc loc) {
  if (!x.valid()) return std::nullopt;
  const absl::StatusOr<int> index = NormalizeAxis(axis, x.rank());
  if (index.ok()) return *index;
  const std::string range = x.rank() == 0 ? "a 0-d value has no axes"
                                          : Concat("expected ", -x.rank(), "..", x.rank() - 1);
  Fail(loc, absl::Status(index.status().code(), Concat(op, ": axis ", axis, " out of range for ",
                                                       Name(x.dtype()), x.shape(), "; ", range)));
  return std::nullopt;
}

int64_t Axis(const char* op, const Value& x, int64_t axis, Loc loc) {
  return FindAxis(op, x, axis, loc).value_or(0);
}

std::vector<int64_t> Axes(const char* op, const Value& x, const std::vector<int64_t>& axes,
                          Loc loc) {
  std::vector<int64_t> normalised;
  for (int64_t axis : axes) normalised.push_back(Axis(op, x, axis, loc));
  return normalised;
}

Loc CallSite() {
  const Trace* trace = Trace::Current();
  return trace == nullptr ? Loc::current() : trace->call_site();
}

}  // namespace internal
}  // namespace halftone::nn
