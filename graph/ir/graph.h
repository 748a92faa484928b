// Graph, Node, Value: a typed static single assignment graph of one training or evaluation step.
//
// Invariants (checked by Verify):
//  1. Nodes are in topological order; every input is an output of an earlier node of the same
//     graph.
//  2. Output types are what the op's inference gives for the inputs and attributes.
//  3. Node names are unique; variable names are unique; at most one commit per variable, of the
//     variable's dtype and shape.
//  4. State is pure: a `variable` node is the value at the start of the step; a `commit` says what
//     it is after it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "halftone/graph/ir/op.h"

namespace halftone::ir {

class Node;

// One output of a node. A default-constructed Value is invalid ("poison" after an error).
struct Value {
  Node* node = nullptr;
  int index = 0;

  bool valid() const { return node != nullptr; }
  const ValueType& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }
  // As in the text form: "%h", "%h#1" for output 1; "poison" if invalid.
  std::string ToString() const;
  friend bool operator==(const Value&, const Value&) = default;
};

// Where the user wrote it.
struct SourceLocation {
  std::string file;              // base name or path as the compiler gave it
  int line = 0;                  // 0: unknown
  std::string ToString() const;  // "model.cc:42"
};

// Which pass made a node, and from which node (its name). Empty pass: the user.
struct Provenance {
  std::string pass;
  std::string from;
};

// What insert-amp-casts decided and why: "f32: denied, because reads exp_3 via add_7"; or, of a node
// about which it does not decide, why: "left alone: computes in f64".
struct AmpDecision {
  bool decided = false;
  AmpClass amp_class = AmpClass::kDeny;
  DType dtype = DType::kF32;
  std::string reason;
  // Of a node that the user denies and whose operands the user made 16-bit: their dtype. It computes
  // in f32 all the same.
  std::optional<DType> raised_from = {};
};

class Node {
 public:
  int64_t id() const { return id_; }  // unique in the graph, never reused, stable across passes
  const OpRecord& op() const { return *op_; }
  // Unique; "relu_3". Printed with a leading %.
  const std::string& name() const { return name_; }
  // Path of the module that made it, "/"-separated: "encoder/fc1"; empty outside modules.
  const std::string& scope() const { return scope_; }
  // scope + "/" + name: what user patterns match.
  std::string path() const;

  const Attributes& attrs() const { return attrs_; }
  Attributes& mutable_attrs() { return attrs_; }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  Value input(int i) const { return inputs_[i]; }
  const std::vector<Value>& inputs() const { return inputs_; }
  const ValueType& input_type(int i) const { return inputs_[i].type(); }
  void set_input(int i, Value v) { inputs_[i] = v; }
  void add_input(Value v) { inputs_.push_back(v); }

  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  Value output(int i = 0) const { return {const_cast<Node*>(this), i}; }
  const ValueType& output_type(int i = 0) const { return outputs_[i]; }
  std::vector<ValueType>& mutable_output_types() { return outputs_; }

  Graph& graph() const { return *graph_; }

  SourceLocation location;
  Provenance provenance;
  AmpDecision amp;
  // The user's wish for this node (module.keep_fp32(), scopes in build()): 0 none, -1 keep f32, +1
  // allow low.
  int8_t amp_request = 0;
  // Why its values are made anew for the backward pass: the call of a module that asks for it,
  // "blocks/3" or "blocks/3#1", or a memory budget. Empty: nobody asks for it. What is made anew
  // has the reason of what it repeats, and `rematerialise` as its pass.
  std::string recompute;

  // "matmul(%h)" for messages.
  std::string Label() const;

 private:
  friend class Graph;
  int64_t id_ = 0;
  const OpRecord* op_ = nullptr;
  std::string name_, scope_;
  Attributes attrs_;
  std::vector<Value> inputs_;
  std::vector<ValueType> outputs_;
  Graph* graph_ = nullptr;
};

inline const ValueType& Value::type() const { return node->output_type(index); }

enum class VariableKind : uint8_t { kParameter, kBuffer, kOptimizer, kScaler, kCounter };
const char* Name(VariableKind kind);  // "parameter", ...
std::optional<VariableKind> ParseVariableKind(const std::string& name);

// How a variable gets its first value.
struct Initializer {
  enum class Kind : uint8_t { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  double a = 0;                  // the constant; lower bound; mean
  double b = 0;                  // upper bound; standard deviation
  std::string ToString() const;  // "constant(0)", "uniform(-0.1,0.1)", "normal(0,1)"
  // Reads what ToString writes. Errors: InvalidArgument (unknown kind, lower > upper, deviation <
  // 0, NaN).
  static absl::StatusOr<Initializer> Parse(const std::string& text);
  friend bool operator==(const Initializer&, const Initializer&) = default;
};

// State that lives across steps. Stored masters are plain layout.
struct Variable {
  std::string name;  // "fc1.weight": per-graph alias
  ValueType type;
  VariableKind kind = VariableKind::kParameter;
  bool trainable = true;  // only parameters
  Initializer init;
  friend bool operator==(const Variable&, const Variable&) = default;
};
// The attributes of a `variable` node for `variable`, and back. Errors: InvalidArgument.
Attributes ToAttributes(const Variable& variable);
absl::StatusOr<Variable> VariableFromAttributes(const Attributes& attrs);

struct Output {
  std::string name;  // may be empty
  Value value;
};

class Graph {
 public:
  explicit Graph(std::string name = "graph") : name_(std::move(name)) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  // A deep copy: same names, ids, order.
  std::unique_ptr<Graph> Clone() const;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  // Nodes of op "input" in declaration order, and of op "variable".
  std::vector<Node*> inputs() const;
  std::vector<Node*> variable_nodes() const;
  std::vector<Node*> commits() const;

  std::vector<Output>& outputs() { return outputs_; }
  const std::vector<Output>& outputs() const { return outputs_; }

  const std::vector<Variable>& variables() const { return variables_; }
  // In constant time, as the next two; null if there is none.
  const Variable* FindVariable(const std::string& name) const;
  // The node that reads the variable, and the commit that writes it. A node that is in the graph
  // keeps its attribute `name` or `variable`.
  Node* FindVariableNode(const std::string& name) const;
  Node* FindCommit(const std::string& variable) const;
  // Position in variables(); -1 if there is none.
  int VariableIndex(const std::string& name) const;
  // Error: AlreadyExists, "variable "fc1.weight" is declared twice".
  absl::Status AddVariable(Variable variable);
  // Those that the graph does not have are left alone. Linear in all variables.
  void RemoveVariables(const std::set<std::string>& names);

  // Appends a node without checks (Builder is the checked way). The name is `name_hint`, with other
  // characters than IsValidName allows replaced by '_', and made unique by _1, _2, ...
  Node* AddNode(const OpRecord* op, std::vector<Value> inputs, Attributes attrs,
                std::vector<ValueType> outputs, const std::string& name_hint,
                const std::string& scope);
  // Replaces every use (inputs and graph outputs) of `from` by `to`, except in `except`. Linear in
  // all nodes: a pass that replaces many values collects them (passes/rewrite/replacements.h).
  void ReplaceUses(Value from, Value to, const Node* except = nullptr);
  // Number of uses of each output is computed on demand by passes; see Users.
  // Removes nodes; they must have no users left outside the set.
  void Remove(const std::vector<Node*>& nodes);
  // Stable topological sort: inputs, then the order that exists, except that each node moves before its
  // first user. Call after a pass that appended nodes. Error: Internal on a cycle.
  absl::Status Sort();
  // Puts the nodes into this order: each of them once. A node that comes after its user is for Sort to
  // mend.
  void Reorder(const std::vector<Node*>& order);
  Node* FindNode(const std::string& name) const;

  // A hash over everything that Print shows with default options: equal texts, equal hashes.
  uint64_t Hash() const;
  // The text form, as a dump shows it, without notes.
  std::string ToString() const;

 private:
  std::string UniqueName(const std::string& hint);
  std::string name_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Output> outputs_;
  std::vector<Variable> variables_;
  // The map in which `node` is found by its variable; null for other ops.
  std::unordered_map<std::string, Node*>* StateNodes(const Node& node);

  std::unordered_map<std::string, size_t> variable_index_;
  std::unordered_map<std::string, Node*> variable_nodes_, commits_;
  std::unordered_map<std::string, int64_t> name_counts_;
  std::unordered_map<std::string, Node*> by_name_;
  int64_t next_id_ = 0;
};

// Cost by the op's record, or its default. Roots cost nothing unless their record says so.
Cost CostOf(const Node& node);

// A letter, digit, '_', '.' or '-'.
bool IsNameChar(char c);
// Whether `name` may be a node name: 1..256 of these.
bool IsValidName(const std::string& name);

// Users of every value, built once per pass: (node, input port) pairs in node order.
class UseMap {
 public:
  struct Use {
    Node* node;
    int port;
  };
  explicit UseMap(const Graph& graph);
  const std::vector<Use>& uses(Value v) const;
  bool is_output(Value v) const;

 private:
  std::map<std::pair<int64_t, int>, std::vector<Use>> uses_;
  std::set<std::pair<int64_t, int>> outputs_;
};

}  // namespace halftone::ir
