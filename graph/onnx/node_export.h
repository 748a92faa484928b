// What a rule of export sees of one node of ours. The first mistake sticks.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/onnx/model.h"

namespace halftone::onnx {

using Names = std::vector<std::string>;  // of values of the model

// The model as it grows, and what our values are called in it.
class ModelBuilder {
 public:
  // "hint", or "hint_1", ... where it is taken.
  std::string UniqueName(const std::string& hint);
  // `name` must be unique.
  void AddInitializer(const std::string& name, const Tensor& value);
  // The name of a constant with these bits, made once.
  std::string Constant(const Tensor& value);
  // What the node that gives a value will call it.
  void ReserveName(ir::Value value, const std::string& name);
  std::string ReservedName(ir::Value value) const;  // "": none
  // From now on the value is there.
  void SetName(ir::Value value, const std::string& name);
  std::string NameOf(ir::Value value) const;  // "": it is not there
  Model& model() { return model_; }

 private:
  Model model_;
  std::set<std::string> taken_;
  std::map<std::string, int64_t> counts_;
  std::map<std::string, std::string> constants_;  // by type and bytes, of small ones
  using ValueNames = std::map<std::pair<int64_t, int>, std::string>;
  ValueNames reserved_, names_;
};

class NodeExport {
 public:
  NodeExport(const ir::Node& n, ModelBuilder& builder) : node(n), builder_(builder) {}

  const ir::Node& node;

  const ir::Attributes& attrs() const { return node.attrs(); }
  int num_inputs() const { return node.num_inputs(); }
  const ir::ValueType& type(int i) const { return node.input_type(i); }
  const Shape& shape(int i) const { return node.input_type(i).shape; }
  DType dtype() const { return node.input_type(0).dtype; }

  // The name of an operand, or of all.
  std::string in(int i);
  Names ins();
  // An operand in `dtype`.
  std::string InAs(int i, DType dtype);

  // The node of ours that gives an operand.
  NodeExport Source(int i) const { return {*node.input(i).node, builder_}; }

  // Adds a node; the name of its one output, which is new.
  std::string Add(const std::string& op_type, const Names& inputs, ir::Attributes attrs = {});
  // The same with `count` outputs.
  Names AddAll(int count, const std::string& op_type, const Names& inputs,
               ir::Attributes attrs = {});
  // Adds the node that gives output 0.
  void Give(const std::string& op_type, const Names& inputs, ir::Attributes attrs = {});
  // The same of output `i`.
  void GiveOutput(int i, const std::string& op_type, const Names& inputs,
                  ir::Attributes attrs = {});
  // The same of the first `count` outputs.
  void GiveOutputs(int count, const std::string& op_type, const Names& inputs,
                   ir::Attributes attrs = {});

  std::string Constant(const Tensor& value) { return builder_.Constant(value); }
  std::string Ints(const std::vector<int64_t>& values);
  // A number of the dtype of operand 0, or of another, rank 0.
  std::string Number(double value) { return NumberOf(dtype(), value); }
  std::string NumberOf(DType dtype, double value);
  std::string Cast(const std::string& x, DType to);

  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (status_.ok()) status_ = Unimplemented(parts...);
  }
  const absl::Status& status() const { return status_; }

 private:
  std::string NameOutput(int i);
  void AddNode(const std::string& name, const std::string& op_type, const Names& inputs,
               Names outputs, ir::Attributes attrs);

  ModelBuilder& builder_;
  absl::Status status_;
};

}  // namespace halftone::onnx
