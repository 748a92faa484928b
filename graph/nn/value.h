// Value: a tensor of a graph that is being traced, and the operators over it.
//
// Ops never throw. The first error of a trace is kept with the user's file and line and comes back
// from the call of the graph; from then on every op gives a poison Value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <vector>

#include "halftone/core/dtype.h"
#include "halftone/core/shape.h"

namespace halftone::ir {
class Node;
}

namespace halftone::nn {

class Parameter;
class Scaler;

// Every function that adds a node ends in `Loc loc = Loc::current()`: the line it is called from.
using Loc = std::source_location;

namespace internal {
class Trace;
}

struct BackwardOptions;

// A handle; copying it copies no data. Valid inside the build() that made it; used in another trace
// it is an error of that trace. A default-constructed Value is poison.
class Value {
 public:
  Value() = default;
  // The value of a parameter or buffer at this point of the step.
  Value(const Parameter& parameter, Loc loc = Loc::current());  // NOLINT: converts by design

  // False for poison.
  bool valid() const;
  // Extents. Poison has kMaxRank extents of 1, so that code which reads an extent needs no check.
  const Shape& shape() const;
  int rank() const { return shape().rank(); }
  // The extent of `axis` in -rank..rank-1; 1, and an error of the trace, if it is out of range.
  int64_t dim(int64_t axis, Loc loc = Loc::current()) const;
  // f32 for poison.
  DType dtype() const;
  // Whether both are the same result of the same op.
  bool same_as(const Value& other) const {
    return trace_ == other.trace_ && node_ == other.node_ && index_ == other.index_;
  }

  // Asks for the gradients of this scalar with respect to the parameters of every optimizer of the
  // graph, or of those that the options name. Several calls add up, whatever scaler each has: every
  // gradient is divided by its own scale, and the step is skipped if one of them is not finite.
  // In evaluation mode it does nothing.
  // Errors (of the trace): the value is not a floating-point scalar; a scaler or an optimizer that
  // the graph does not have.
  void backward(Loc loc = Loc::current()) const;
  void backward(const BackwardOptions& options, Loc loc = Loc::current()) const;

 private:
  friend class internal::Trace;
  Value(uint64_t trace, ir::Node* node, int index) : trace_(trace), node_(node), index_(index) {}
  // The number of the trace that made it: a node is only followed while that trace is the current
  // one of the thread, so a Value kept too long is found, not followed.
  uint64_t trace_ = 0;
  ir::Node* node_ = nullptr;
  int index_ = 0;
};

// Inputs or outputs of build().
class Values {
 public:
  Values() = default;
  Values(std::initializer_list<Value> values) : values_(values) {}
  explicit Values(std::vector<Value> values) : values_(std::move(values)) {}

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  // An index out of range is an error of the trace: "model.cc:30: in[3]: the graph has 2 values".
  // A subscript takes no further argument, so the index carries the location.
  struct Index {
    Index(int i, Loc l = Loc::current()) : index(i), loc(l) {}  // NOLINT: converts by design
    int64_t index;
    Loc loc;
  };
  Value operator[](Index i) const;
  void push_back(Value value) { values_.push_back(value); }
  std::vector<Value>::const_iterator begin() const { return values_.begin(); }
  std::vector<Value>::const_iterator end() const { return values_.end(); }
  const std::vector<Value>& vector() const { return values_; }

 private:
  std::vector<Value> values_;
};

// An operand of an operator: a Value or a number, with the place it was written at. Operators take
// no default arguments, but the conversion of an operand does.
class Located {
 public:
  Located(const Value& value, Loc loc = Loc::current())  // NOLINT: converts by design
      : value_(value), loc_(loc) {}
  Located(const Parameter& parameter, Loc loc = Loc::current());  // NOLINT
  Located(double number, Loc loc = Loc::current())                // NOLINT
      : number_(number), is_number_(true), loc_(loc) {}
  bool is_number() const { return is_number_; }
  double number() const { return number_; }
  const Value& value() const { return value_; }
  Loc loc() const { return loc_; }

 private:
  Value value_;
  double number_ = 0;
  bool is_number_ = false;
  Loc loc_;
};

// A value, or none: linear(x, weight) has no bias. An undefined parameter stands for none.
class OptionalValue {
 public:
  OptionalValue(std::nullopt_t) {}                      // NOLINT: converts by design
  OptionalValue(const Value& value) : value_(value) {}  // NOLINT
  OptionalValue(const Parameter& parameter, Loc loc = Loc::current());  // NOLINT
  bool has_value() const { return value_.has_value(); }
  // Requires has_value().
  const Value& value() const { return *value_; }

 private:
  std::optional<Value> value_;
};

// Elementwise with NumPy broadcasting. Mixed dtypes meet in Promote(a, b); a number takes the other
// operand's dtype (f32 beside an integer, unless the number is whole).
// Errors (of the trace): shapes that do not broadcast.
Value operator+(Located a, Located b);
Value operator-(Located a, Located b);
Value operator*(Located a, Located b);
Value operator/(Located a, Located b);
Value operator-(Located a);
// Comparisons give bool. == and != keep their C++ meaning out of reach: use equal and not_equal.
Value operator<(Located a, Located b);
Value operator<=(Located a, Located b);
Value operator>(Located a, Located b);
Value operator>=(Located a, Located b);

}  // namespace halftone::nn
