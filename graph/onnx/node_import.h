// What a rule of import sees of one node of ONNX. The first mistake sticks; after it every operand
// is poison and every attribute its default, so rules need no error handling.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "halftone/graph/onnx/model.h"
#include "halftone/graph/onnx/rules.h"
#include "halftone/graph/onnx/static_values.h"

namespace halftone::onnx {

using Ints = std::vector<int64_t>;

class NodeImport {
 public:
  NodeImport(const Node& node, int64_t opset, std::vector<ir::Expr> inputs, ir::Builder& builder,
             StaticValues& values);

  ir::Builder& b;
  const Node& node;
  const int64_t opset;

  // Operands. Those behind the last that is given do not count.
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const;  // those that have a name, up to the last
  bool has(int i) const { return i < num_inputs() && inputs_[i].valid(); }
  ir::Expr in(int i);
  const std::vector<ir::Expr>& inputs() const { return inputs_; }
  // Extents and rank of an operand; after a mistake kMaxRank extents of 1, so that indices stay in
  // bounds.
  Ints shape(int i);
  int rank(int i) { return static_cast<int>(shape(i).size()); }
  DType dtype(int i);

  // The op that gives output 0, named after it.
  ir::Expr Result(const std::string& op, const std::vector<ir::Expr>& inputs,
                  ir::Attributes attrs = {});

  // The value of an operand that must be known before the graph runs.
  std::optional<Tensor> Static(int i);
  // Numbers beyond kMaxInt, which no shape reaches, as kMaxInt, here and in all lists.
  Ints StaticInts(int i);
  static constexpr int64_t kMaxInt = kMaxElements * 2;
  // Whether the rule may make a value of so many elements; a mistake if not.
  bool Spend(int64_t elements);
  // The value of an operand that is a constant of the model; null if it is none.
  const Tensor* Constant(int i) const;
  // The only element; `fallback` where the operand is absent.
  double StaticNumber(int i, double fallback);

  // Attributes, and their values where the node lacks them; an integer beyond kMaxInt is an
  // error. What no rule has asked for is one too.
  bool has_attr(const std::string& name) const { return node.attributes.Has(name); }
  int64_t Int(const std::string& name, int64_t fallback);
  bool Bool(const std::string& name, bool fallback) { return Int(name, fallback ? 1 : 0) != 0; }
  double Float(const std::string& name, double fallback);
  std::string String(const std::string& name, const std::string& fallback);
  Ints IntList(const std::string& name, const Ints& fallback);
  // As it stands; null where the node lacks it or has another kind.
  template <typename T>
  const T* Raw(const std::string& name) {
    covered_.insert(name);
    const ir::AttrValue* value = node.attributes.Find(name);
    return value == nullptr ? nullptr : std::get_if<T>(value);
  }
  // Null where the node lacks it.
  const std::vector<double>* Floats(const std::string& name);
  std::optional<Tensor> TensorAttr(const std::string& name);
  // A type by its number; nullopt where the node lacks it.
  std::optional<DType> DTypeAttr(const std::string& name);
  // Has no meaning here, or only its usual value has one.
  void Ignore(const std::string& name) { covered_.insert(name); }

  // A list that older opsets have as an attribute and newer ones as an operand. nullopt: neither.
  std::optional<Ints> IntsFrom(const std::string& attr, int input);
  // The same of a number.
  double NumberFrom(const std::string& attr, int input, double fallback);

  // An axis of operand 0, from 0.
  int64_t Axis(int64_t axis) { return AxisOf(axis, rank(0)); }
  int64_t AxisOf(int64_t axis, int rank);

  template <typename... Parts>
  void Fail(const Parts&... parts) {
    FailWith(Unimplemented(parts...));
  }
  void FailWith(absl::Status status);
  bool ok() const { return status_.ok() && b.status().ok(); }

  // Once the rule has run: its first mistake, or the first attribute that it does not cover.
  absl::Status Finish();

 private:
  template <typename T>
  const T* Find(const std::string& name, const char* expected);

  std::vector<ir::Expr> inputs_;
  StaticValues& values_;
  std::set<std::string> covered_;
  absl::Status status_;
};

}  // namespace halftone::onnx
