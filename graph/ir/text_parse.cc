// Statements of the text form; see text_parser.h for the grammar.
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/ir/text_format.h"
#include "halftone/graph/ir/text_parser.h"
#include "halftone/graph/ir/verify.h"

namespace halftone::ir {

absl::StatusOr<std::unique_ptr<Graph>> Parse(const std::string& text,
                                             const std::string& constants_dir) {
  if (text.size() > kMaxFileBytes) {
    return InvalidArgument("line 1, column 1: the text has ", text.size(),
                           " bytes; expected at most ", kMaxFileBytes);
  }
  return TextParser(text, constants_dir).Run();
}

TextParser::TextParser(const std::string& text, std::string constants_dir)
    : text_(text),
      constants_dir_(std::move(constants_dir)),
      lexer_(text),
      graph_(std::make_unique<Graph>()),
      builder_(graph_.get()) {}

absl::StatusOr<std::unique_ptr<Graph>> TextParser::Run() {
  // Roots are not named in the text; their names must leave those that are free.
  HT_ASSIGN_OR_RETURN(names_in_text_, ValueNames(text_));
  HT_RETURN_IF_ERROR(ParseGraph());
  if (absl::Status status = Verify(*graph_); !status.ok()) {
    return ErrorAt(token_, Message(status));
  }
  return std::move(graph_);
}

absl::Status TextParser::Step() {
  HT_ASSIGN_OR_RETURN(token_, lexer_.Next());
  return absl::OkStatus();
}

absl::Status TextParser::Unexpected(const char* expected) const {
  return ErrorAt(token_, Concat("got ", token_.ToString(), "; expected ", expected));
}

absl::Status TextParser::Expect(char punct) {
  if (!token_.Is(punct)) {
    const char quoted[] = {'\'', punct, '\'', '\0'};
    return Unexpected(quoted);
  }
  return Step();
}

absl::Status TextParser::ExpectWord(const char* word) {
  if (!token_.IsWord(word)) return Unexpected(word);
  return Step();
}

absl::StatusOr<bool> TextParser::Accept(char punct) {
  if (!token_.Is(punct)) return false;
  HT_RETURN_IF_ERROR(Step());
  return true;
}

absl::Status TextParser::ParseGraph() {
  HT_RETURN_IF_ERROR(Step());
  HT_RETURN_IF_ERROR(ExpectWord("graph"));
  if (token_.kind == TokenKind::kGlobal) {
    graph_->set_name(token_.text);
    HT_RETURN_IF_ERROR(Step());
  } else if (token_.Is('@')) {
    HT_RETURN_IF_ERROR(Step());
    HT_ASSIGN_OR_RETURN(std::string name, ParseString());
    graph_->set_name(std::move(name));
  } else {
    return Unexpected("@name");
  }
  HT_RETURN_IF_ERROR(Expect('('));
  for (bool more = !token_.Is(')'); more;) {
    HT_RETURN_IF_ERROR(ParseParameter());
    HT_ASSIGN_OR_RETURN(more, Accept(','));
  }
  HT_RETURN_IF_ERROR(Expect(')'));
  HT_RETURN_IF_ERROR(Expect('{'));
  while (!token_.Is('}') && !token_.IsWord("return")) HT_RETURN_IF_ERROR(ParseStatement());
  if (token_.IsWord("return")) HT_RETURN_IF_ERROR(ParseReturn());
  HT_RETURN_IF_ERROR(Expect('}'));
  if (token_.kind != TokenKind::kEnd) return Unexpected("end of text");
  return absl::OkStatus();
}

absl::Status TextParser::ParseParameter() {
  if (token_.kind != TokenKind::kValue) return Unexpected("%name");
  Statement input;
  input.op = token_;
  input.op.text = "input";
  input.results.push_back({token_, -1});
  std::string name = token_.text;
  HT_RETURN_IF_ERROR(Step());
  if (token_.kind == TokenKind::kString) {
    HT_ASSIGN_OR_RETURN(name, ParseString());
  }
  HT_RETURN_IF_ERROR(Expect(':'));
  HT_ASSIGN_OR_RETURN(TypeAt type, ParseType());
  const absl::Span<const int64_t> dims = type.type.shape.dims();
  input.attrs = {{"name", std::move(name)},
                 {"dtype", type.type.dtype},
                 {"shape", std::vector<int64_t>(dims.begin(), dims.end())}};
  input.types.push_back(std::move(type));
  HT_RETURN_IF_ERROR(ParseNotes(input.notes));
  return Build(input);
}

absl::Status TextParser::ParseStatement() {
  Statement statement;
  if (token_.kind == TokenKind::kValue) HT_RETURN_IF_ERROR(ParseResults(statement.results));
  if (token_.kind != TokenKind::kIdent) return Unexpected("an op");
  statement.op = token_;
  HT_RETURN_IF_ERROR(Step());
  if (statement.op.text == "input") {
    return ErrorAt(statement.op, "input: expected in the header of the graph");
  }
  if (statement.op.text == "variable") return ParseVariable(statement);
  if (statement.op.text == "commit") return ParseCommit(statement);
  return ParseOp(statement);
}

absl::Status TextParser::ParseResults(std::vector<Result>& results) {
  for (bool more = true; more;) {
    if (token_.kind != TokenKind::kValue) return Unexpected("%name");
    Result result{token_, -1};
    HT_RETURN_IF_ERROR(Step());
    if (token_.Is('#')) {
      HT_RETURN_IF_ERROR(Step());
      HT_ASSIGN_OR_RETURN(const int64_t index, ParseIntToken());
      const bool canonical = !results.empty() && index == static_cast<int64_t>(results.size()) &&
                             result.token.text == results[0].token.text;
      if (!canonical) {
        return ErrorAt(result.token, Concat("result %", result.token.text, "#", index,
                                            "; expected the first name and the position"));
      }
      result.index = static_cast<int>(index);
    }
    results.push_back(std::move(result));
    if (results.size() > kMaxNodeInputs) {
      return ErrorAt(token_, Concat("too many results; expected at most ", kMaxNodeInputs));
    }
    HT_ASSIGN_OR_RETURN(more, Accept(','));
  }
  return Expect('=');
}

absl::Status TextParser::ParseVariable(Statement& statement) {
  HT_ASSIGN_OR_RETURN(std::string name, ParseString());
  const OpRecord* op = OpRegistry::Global().Find("variable");
  if (token_.Is('{')) HT_RETURN_IF_ERROR(ParseAttributes(*op, statement.attrs));
  HT_RETURN_IF_ERROR(Expect(':'));
  HT_ASSIGN_OR_RETURN(TypeAt type, ParseType());
  const absl::Span<const int64_t> dims = type.type.shape.dims();
  statement.attrs.Set("name", std::move(name));
  statement.attrs.Set("dtype", type.type.dtype);
  statement.attrs.Set("shape", std::vector<int64_t>(dims.begin(), dims.end()));
  statement.types.push_back(std::move(type));
  HT_RETURN_IF_ERROR(ParseNotes(statement.notes));
  return statement.results.empty() ? DeclareOnly(statement) : Build(statement);
}

absl::Status TextParser::ParseCommit(Statement& statement) {
  const Token variable_token = token_;
  HT_ASSIGN_OR_RETURN(std::string variable, ParseString());
  statement.attrs.Set("variable", std::move(variable));
  HT_RETURN_IF_ERROR(Expect('='));
  HT_ASSIGN_OR_RETURN(const Value value, ParseValue());
  statement.inputs.push_back(builder_.Wrap(value));
  HT_RETURN_IF_ERROR(ParseNotes(statement.notes));
  HT_RETURN_IF_ERROR(CheckCommit(statement, variable_token));
  return Build(statement);
}

absl::Status TextParser::ParseOp(Statement& statement) {
  const OpRecord* op = OpRegistry::Global().Find(statement.op.text);
  if (op == nullptr) {
    return ErrorAt(statement.op, Concat(statement.op.ToString(), ": no such op"));
  }
  HT_ASSIGN_OR_RETURN(const bool operands, Accept('('));
  if (operands) {
    for (bool more = !token_.Is(')'); more;) {
      HT_ASSIGN_OR_RETURN(const Value value, ParseValue());
      statement.inputs.push_back(builder_.Wrap(value));
      if (statement.inputs.size() > kMaxNodeInputs) {
        return ErrorAt(token_, Concat("too many inputs; expected at most ", kMaxNodeInputs));
      }
      HT_ASSIGN_OR_RETURN(more, Accept(','));
    }
    HT_RETURN_IF_ERROR(Expect(')'));
  }
  if (token_.Is('{')) HT_RETURN_IF_ERROR(ParseAttributes(*op, statement.attrs));
  HT_ASSIGN_OR_RETURN(const bool types, Accept(':'));
  if (types) HT_RETURN_IF_ERROR(ParseTypeList(statement.types));
  HT_RETURN_IF_ERROR(ParseNotes(statement.notes));
  return Build(statement);
}

absl::Status TextParser::ParseReturn() {
  HT_RETURN_IF_ERROR(Step());
  std::unordered_set<std::string> names;
  for (bool more = true; more;) {
    Output output;
    if (token_.kind == TokenKind::kIdent || token_.kind == TokenKind::kString) {
      if (!names.insert(token_.text).second) {
        return ErrorAt(token_, "a second output called " + Quote(token_.text.substr(0, 80)));
      }
      output.name = token_.text;
      HT_RETURN_IF_ERROR(Step());
      HT_RETURN_IF_ERROR(Expect('='));
    }
    HT_ASSIGN_OR_RETURN(output.value, ParseValue());
    graph_->outputs().push_back(std::move(output));
    HT_ASSIGN_OR_RETURN(more, Accept(','));
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> TextParser::ParseValue() {
  if (token_.kind != TokenKind::kValue) return Unexpected("%name");
  const Token at = token_;
  const auto it = values_.find(at.text);
  if (it == values_.end()) return ErrorAt(at, at.ToString() + " is not defined before this line");
  Value value = it->second;
  HT_RETURN_IF_ERROR(Step());
  if (token_.Is('#')) {
    HT_RETURN_IF_ERROR(Step());
    HT_ASSIGN_OR_RETURN(const int64_t index, ParseIntToken());
    if (value.index != 0 || index < 0 || index >= value.node->num_outputs()) {
      return ErrorAt(at, Concat(at.ToString(), "#", index, ": the node has ",
                                value.node->num_outputs(), " outputs"));
    }
    value.index = static_cast<int>(index);
  }
  return value;
}

}  // namespace halftone::ir
