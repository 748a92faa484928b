// Tokens of the text form.
#pragma once

#include <string>
#include <unordered_set>

#include "halftone/core/status.h"

namespace halftone::ir {

enum class TokenKind : uint8_t {
  kEnd,
  kIdent,   // relu, f32, nan
  kValue,   // %name; text without the %
  kGlobal,  // @name; text without the @
  kString,  // text without quotes and escapes
  kNumber,  // 12, -0.5, 1e-05, -inf, 0x7fc00001
  kPunct,   // one of ( ) { } [ ] < > , : = # @
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
  int column = 1;  // of the first byte, from 1
  bool starts_line = true;

  bool Is(char punct) const { return kind == TokenKind::kPunct && text[0] == punct; }
  bool IsWord(const char* word) const { return kind == TokenKind::kIdent && text == word; }
  // For messages: "'{'", "number 12", "end of text".
  std::string ToString() const;
};

// InvalidArgument "line 3, column 14: ...".
absl::Status ErrorAt(const Token& token, const std::string& message);

class Lexer {
 public:
  explicit Lexer(const std::string& text) : text_(text) {}
  // After the last token, kEnd for ever. Error: as ErrorAt.
  absl::StatusOr<Token> Next();
  size_t bytes_left() const { return text_.size() - at_; }

 private:
  void SkipBlanks();
  void Advance() { ++at_; }
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  absl::Status LexName(Token& token);
  absl::Status LexString(Token& token);
  absl::Status LexNumber(Token& token);
  void TakeDigits(Token& token);

  const std::string& text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  bool starts_line_ = true;
};

// Every name that follows a % in the text.
absl::StatusOr<std::unordered_set<std::string>> ValueNames(const std::string& text);

}  // namespace halftone::ir
