// Builder: makes checked nodes. The first error sticks; after it every call gives poison, so
// formulas need no error handling and the caller looks at status() once.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::ir {

// A value with the builder that can extend it, so that formulas read like formulas. Poison if
// !valid().
class Expr {
 public:
  Expr() = default;
  Expr(Builder* builder, Value value) : builder_(builder), value_(value) {}
  bool valid() const { return value_.valid(); }
  Value value() const { return value_; }
  Builder* builder() const { return builder_; }
  // Requires: valid().
  const ValueType& type() const { return value_.type(); }
  DType dtype() const { return value_.dtype(); }
  const Shape& shape() const { return value_.shape(); }

 private:
  Builder* builder_ = nullptr;
  Value value_;
};

class Builder {
 public:
  explicit Builder(Graph* graph) : graph_(graph) {}

  // Adds op `name`: checks input count and dtypes, attribute names and types, fills in defaults,
  // infers output types. Gives one Expr per output; on an error records it and gives poison (as
  // many as the record has outputs; one if unknown op). Errors name the location set by At, the op,
  // value, got, expected.
  std::vector<Expr> Make(const std::string& op, const std::vector<Expr>& inputs,
                         Attributes attrs = {});
  // The first output.
  Expr Op(const std::string& op, const std::vector<Expr>& inputs, Attributes attrs = {});
  // Appends a node without outputs (commit, markers); null after an error.
  Node* Root(const std::string& op, const std::vector<Expr>& inputs, Attributes attrs = {});

  Expr Input(const std::string& name, const ValueType& type);
  // Declares the variable if the graph has none of that name (an equal redeclaration gives the same
  // node).
  Expr Var(const Variable& variable);
  Expr Constant(const Tensor& value);
  // A rank-0 constant.
  Expr Scalar(DType dtype, double value);
  // A rank-0 constant of `like`'s dtype, for formulas.
  Expr ScalarLike(Expr like, double value);
  void Commit(const std::string& variable, Expr value);
  // Identity if the dtype is already `to`.
  Expr Cast(Expr x, DType to);

  // Where the next nodes come from. Nodes made while set carry it.
  void At(SourceLocation location) { location_ = std::move(location); }
  const SourceLocation& location() const { return location_; }
  void set_scope(std::string scope) { scope_ = std::move(scope); }
  const std::string& scope() const { return scope_; }
  void set_provenance(Provenance provenance) { provenance_ = std::move(provenance); }
  void set_amp_request(int8_t request) { amp_request_ = request; }
  int8_t amp_request() const { return amp_request_; }
  void set_recompute(std::string why) { recompute_ = std::move(why); }
  // Name hint for the next node only; the default hint is the op name.
  void NameNext(std::string hint) { name_hint_ = std::move(hint); }

  // Records an error (kept only if it is the first), prefixed with the location.
  void Fail(absl::Status status);
  const absl::Status& status() const { return status_; }
  Graph& graph() const { return *graph_; }
  Expr Wrap(Value v) { return Expr(this, v); }

 private:
  Graph* graph_;
  absl::Status status_;
  SourceLocation location_;
  std::string scope_;
  Provenance provenance_;
  int8_t amp_request_ = 0;
  std::string recompute_;
  std::string name_hint_;
};

// C++ leaves open which operand of a + b is built first, so a * b + c * d may give its nodes in
// either order. Where the order of nodes matters to somebody, name the parts.
//
// Elementwise with broadcasting; both operands must have the same dtype (a double takes the other's
// dtype).
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator+(Expr a, double b);
Expr operator-(Expr a, double b);
Expr operator*(Expr a, double b);
Expr operator/(Expr a, double b);
Expr operator+(double a, Expr b);
Expr operator-(double a, Expr b);
Expr operator*(double a, Expr b);
Expr operator/(double a, Expr b);

// What a gradient lambda sees. `dy(i)` is the gradient arriving at output i (a constant zero of the
// output's type if nothing arrives; has_dy says which); set_dx gives the contribution to input i,
// of that input's dtype and shape.
struct GradContext {
  Builder& b;
  const Node& node;
  std::vector<Expr> dys;    // poison where nothing arrives
  std::vector<bool> needs;  // whether input i's gradient is wanted; skip work where not
  std::vector<Expr> dxs;

  Expr in(int i) { return b.Wrap(node.input(i)); }
  Expr out(int i) { return b.Wrap(node.output(i)); }
  bool has_dy(int i) const { return dys[i].valid(); }
  Expr dy(int i);
  bool need(int i) const { return needs[i]; }
  void set_dx(int i, Expr dx) { dxs[i] = dx; }
  const Attributes& attrs() const { return node.attrs(); }
};

}  // namespace halftone::ir
