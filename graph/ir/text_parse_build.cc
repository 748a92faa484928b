// From a statement that was read to a node of the graph.
#include "halftone/graph/ir/infer.h"
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/ir/text_format.h"
#include "halftone/graph/ir/text_parser.h"

namespace halftone::ir {

absl::Status TextParser::Build(Statement& statement) {
  if (graph_->nodes().size() >= kMaxNodes) {
    return ErrorAt(statement.op, Concat("more than ", kMaxNodes, " nodes"));
  }
  const std::string& op = statement.op.text;
  for (const Result& result : statement.results) {
    const std::string& name = result.token.text;
    // Of a root only the node has the name, no value.
    const bool taken = values_.count(name) != 0 || graph_->FindNode(name) != nullptr;
    if (result.index < 0 && taken) {
      return ErrorAt(result.token, result.token.ToString() + " is defined twice");
    }
  }
  builder_.NameNext(statement.results.empty() ? NameForRoot(op) : statement.results[0].token.text);
  builder_.set_scope(statement.notes.scope);
  builder_.set_provenance(statement.notes.provenance);
  builder_.set_amp_request(statement.notes.amp_request);
  builder_.set_recompute(statement.notes.recompute);
  const size_t before = graph_->nodes().size();
  builder_.Make(op, statement.inputs, std::move(statement.attrs));
  if (!builder_.status().ok()) return ErrorAt(statement.op, Message(builder_.status()));
  HT_CHECK(graph_->nodes().size() == before + 1, "a node was made");
  Node& node = *graph_->nodes().back();
  node.location = statement.notes.location;
  node.amp = statement.notes.amp;
  HT_RETURN_IF_ERROR(CheckResults(statement, node.num_outputs()));
  HT_RETURN_IF_ERROR(ApplyTypes(statement, node));
  if (op == "variable") {
    HT_ASSIGN_OR_RETURN(Variable variable, VariableFromAttributes(node.attrs()));
    if (absl::Status status = graph_->AddVariable(std::move(variable)); !status.ok()) {
      return ErrorAt(statement.op, Message(status));
    }
  }
  return BindResults(statement, node);
}

absl::Status TextParser::DeclareOnly(const Statement& statement) {
  Attributes attrs = statement.attrs;
  const OpRecord* op = OpRegistry::Global().Find("variable");
  absl::Status status = CompleteAttributes(*op, op->name, attrs);
  if (status.ok()) status = InferTypes(*op, op->name, {}, attrs).status();
  if (status.ok()) {
    auto variable = VariableFromAttributes(attrs);
    status = variable.ok() ? graph_->AddVariable(*std::move(variable)) : variable.status();
  }
  if (status.ok() && graph_->variables().size() > kMaxNodes) {
    status = InvalidArgument("more than ", kMaxNodes, " variables");
  }
  return status.ok() ? status : ErrorAt(statement.op, Message(status));
}

absl::Status TextParser::CheckCommit(const Statement& statement, const Token& variable_token) {
  const std::string& name = statement.attrs.GetString("variable");
  const std::string label = "commit " + Quote(name.substr(0, 80));
  const Variable* variable = graph_->FindVariable(name);
  if (variable == nullptr) {
    return ErrorAt(variable_token, label + ": the variable is not declared before this line");
  }
  if (!committed_.insert(name).second) {
    return ErrorAt(variable_token, label + ": the variable has a commit already");
  }
  const Expr& value = statement.inputs[0];
  if (value.dtype() != variable->type.dtype || value.shape() != variable->type.shape) {
    return ErrorAt(statement.op, Concat(label, ": value ", value.value().ToString(), " is ",
                                        value.type(), "; expected ", variable->type));
  }
  return absl::OkStatus();
}

absl::Status TextParser::CheckResults(const Statement& statement, int num_outputs) {
  const int given = static_cast<int>(statement.results.size());
  // One name stands for all outputs; before a root it is the node's name alone.
  if (given == num_outputs || given == 1 || (given == 0 && num_outputs == 0)) {
    return absl::OkStatus();
  }
  return ErrorAt(statement.op, Concat(statement.op.text, ": got ", given, " results; it has ",
                                      num_outputs, " outputs"));
}

absl::Status TextParser::ApplyTypes(const Statement& statement, Node& node) {
  if (statement.types.empty()) return absl::OkStatus();
  if (static_cast<int>(statement.types.size()) != node.num_outputs()) {
    return ErrorAt(statement.types[0].token,
                   Concat(node.Label(), ": got ", statement.types.size(), " types; it has ",
                          node.num_outputs(), " outputs"));
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    const auto& [token, given] = statement.types[i];
    ValueType& inferred = node.mutable_output_types()[i];
    if (given.dtype != inferred.dtype || given.shape != inferred.shape) {
      return ErrorAt(token, Concat(node.Label(), ": output ", i, " is given as ", given,
                                   "; inference gives ", inferred));
    }
    inferred.layout = given.layout;
  }
  return absl::OkStatus();
}

absl::Status TextParser::BindResults(const Statement& statement, Node& node) {
  if (node.num_outputs() == 0) return absl::OkStatus();
  for (size_t i = 0; i < statement.results.size(); ++i) {
    const Result& result = statement.results[i];
    if (result.index >= 0) continue;
    const Value value = node.output(static_cast<int>(i));
    if (!values_.emplace(result.token.text, value).second) {
      return ErrorAt(result.token, result.token.ToString() + " is defined twice");
    }
  }
  return absl::OkStatus();
}

std::string TextParser::NameForRoot(const std::string& op) {
  const auto is_free = [this](const std::string& name) {
    return names_in_text_.count(name) == 0 && graph_->FindNode(name) == nullptr;
  };
  int64_t& count = root_counts_[op];
  std::string name = op;
  while (!is_free(name)) name = op + "_" + std::to_string(++count);
  return name;
}

}  // namespace halftone::ir
