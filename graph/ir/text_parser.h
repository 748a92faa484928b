// Recursive descent over the text form. The grammar has no nesting, so the depth is bounded.
//
//   graph     := "graph" name "(" [param {"," param}] ")" "{" {statement} [return] "}"
//   name      := @name | "@" string
//   param     := %name [string] ":" type notes
//   statement := [result {"," result} "="] (variable | commit | op)
//   result    := %name ["#" int]
//   variable  := "variable" string [attrs] ":" type notes
//   commit    := "commit" string "=" value notes
//   op        := word ["(" [value {"," value}] ")"] [attrs] [":" type {"," type}] notes
//   value     := %name ["#" int]
//   attrs     := "{" [word "=" attr {"," word "=" attr}] "}"
//   type      := dtype "[" [int {"," int}] "]" ["{" ("nhwc" | "nchw16c") "}"]
//   return    := "return" [(word | string) "="] value {"," ...}
//
// Notes end with their line, since `amp(...)` is also how a statement may begin.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/text_lex.h"

namespace halftone::ir {

class TextParser {
 public:
  TextParser(const std::string& text, std::string constants_dir);
  absl::StatusOr<std::unique_ptr<Graph>> Run();

 private:
  struct Notes {
    std::string scope;
    SourceLocation location;
    Provenance provenance;
    AmpDecision amp;
    int8_t amp_request = 0;
    std::string recompute;
  };
  struct Result {
    Token token;
    int index = -1;  // after '#'; -1: none given
  };
  struct TypeAt {
    Token token;
    ValueType type;
  };
  struct Statement {
    std::vector<Result> results;
    Token op;  // the op's name: where errors point
    std::vector<Expr> inputs;
    Attributes attrs;
    std::vector<TypeAt> types;
    Notes notes;
  };

  // text_parse.cc: statements.
  absl::Status ParseGraph();
  absl::Status ParseParameter();
  absl::Status ParseStatement();
  absl::Status ParseResults(std::vector<Result>& results);
  absl::Status ParseVariable(Statement& statement);
  absl::Status ParseCommit(Statement& statement);
  absl::Status ParseOp(Statement& statement);
  absl::Status ParseReturn();
  absl::StatusOr<Value> ParseValue();
  // text_parse_build.cc: from what was read to a node.
  absl::Status Build(Statement& statement);
  absl::Status DeclareOnly(const Statement& statement);
  absl::Status CheckCommit(const Statement& statement, const Token& variable_token);
  absl::Status CheckResults(const Statement& statement, int num_outputs);
  absl::Status ApplyTypes(const Statement& statement, Node& node);
  absl::Status BindResults(const Statement& statement, Node& node);
  std::string NameForRoot(const std::string& op);
  // text_parse_value.cc: types, attributes, notes.
  absl::StatusOr<TypeAt> ParseType();
  absl::StatusOr<Shape> ParseShape();
  absl::Status ParseTypeList(std::vector<TypeAt>& types);
  absl::Status ParseAttributes(const OpRecord& op, Attributes& attrs);
  absl::StatusOr<AttrValue> ParseAttrValue(AttrType type);
  template <typename T, typename ParseItem>
  absl::StatusOr<AttrValue> ParseList(ParseItem parse_item);
  absl::StatusOr<int64_t> ParseIntToken();
  absl::StatusOr<double> ParseFloatToken();
  absl::StatusOr<DType> ParseDTypeToken();
  absl::StatusOr<std::string> ParseString();
  absl::StatusOr<AttrValue> ParseTensor();
  absl::Status ParseElements(const Token& start, bool splat, Tensor& tensor);
  absl::Status ParseNotes(Notes& notes);
  absl::Status ParseAmpNote(Notes& notes);

  absl::Status Step();  // reads the next token into token_
  absl::Status Expect(char punct);
  absl::Status ExpectWord(const char* word);
  // Whether the token was `punct` and has been passed.
  absl::StatusOr<bool> Accept(char punct);
  absl::Status Unexpected(const char* expected) const;

  const std::string& text_;
  std::string constants_dir_;
  Lexer lexer_;
  Token token_;
  std::unique_ptr<Graph> graph_;
  Builder builder_;
  std::unordered_map<std::string, Value> values_;
  std::unordered_set<std::string> names_in_text_;
  std::unordered_map<std::string, int64_t> root_counts_;
  std::unordered_set<std::string> committed_;
  int64_t splat_bytes_ = 0;
};

}  // namespace halftone::ir
