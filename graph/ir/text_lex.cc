#include "halftone/graph/ir/text_lex.h"

#include <cstring>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/ir/text_format.h"

namespace halftone::ir {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsIdentChar(char c) { return IsNameChar(c) && c != '-'; }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string Token::ToString() const {
  const std::string brief = text.size() > 40 ? text.substr(0, 37) + "..." : text;
  switch (kind) {
    case TokenKind::kEnd:
      return "end of text";
    case TokenKind::kIdent:
      return "'" + brief + "'";
    case TokenKind::kValue:
      return "%" + brief;
    case TokenKind::kGlobal:
      return "@" + brief;
    case TokenKind::kString:
      return "string " + Quote(brief);
    case TokenKind::kNumber:
      return "number " + brief;
    case TokenKind::kPunct:
      return "'" + brief + "'";
  }
  return "?";
}

absl::Status ErrorAt(const Token& token, const std::string& message) {
  return InvalidArgument("line ", token.line, ", column ", token.column, ": ", message);
}

void Lexer::SkipBlanks() {
  while (!AtEnd()) {
    const char c = Peek();
    if (c == '\n') {
      Advance();
      ++line_;
      line_start_ = at_;
      starts_line_ = true;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      Advance();
    } else if (c == '/' && Peek(1) == '/') {
      while (!AtEnd() && Peek() != '\n') Advance();
    } else {
      return;
    }
  }
}

absl::StatusOr<Token> Lexer::Next() {
  SkipBlanks();
  Token token;
  token.line = line_;
  token.column = static_cast<int>(at_ - line_start_) + 1;
  token.starts_line = starts_line_;
  starts_line_ = false;
  if (AtEnd()) return token;
  const char c = Peek();
  if (c == '%' || (c == '@' && IsNameChar(Peek(1)))) {
    token.kind = c == '%' ? TokenKind::kValue : TokenKind::kGlobal;
    Advance();
    HT_RETURN_IF_ERROR(LexName(token));
  } else if (IsLetter(c)) {
    token.kind = TokenKind::kIdent;
    while (IsIdentChar(Peek())) {
      token.text += Peek();
      Advance();
    }
    if (token.text.size() > kMaxNameBytes) {
      return ErrorAt(token, Concat("the word has ", token.text.size(), " bytes; expected at most ",
                                   kMaxNameBytes));
    }
  } else if (c == '"') {
    HT_RETURN_IF_ERROR(LexString(token));
  } else if (IsDigit(c) || c == '-') {
    HT_RETURN_IF_ERROR(LexNumber(token));
  } else if (c != '\0' && std::strchr("(){}[]<>,:=#@", c) != nullptr) {
    token.kind = TokenKind::kPunct;
    token.text = c;
    Advance();
  } else {
    return ErrorAt(token, "unexpected character " + Quote(std::string(1, c)));
  }
  return token;
}

absl::Status Lexer::LexName(Token& token) {
  while (IsNameChar(Peek())) {
    token.text += Peek();
    Advance();
  }
  if (token.text.empty()) return ErrorAt(token, "expected a name after '%'");
  if (token.text.size() > kMaxNameBytes) return ErrorAt(token, "the name is too long");
  return absl::OkStatus();
}

absl::Status Lexer::LexString(Token& token) {
  token.kind = TokenKind::kString;
  Advance();
  for (;;) {
    if (AtEnd() || Peek() == '\n') return ErrorAt(token, "the string has no end on its line");
    if (token.text.size() > kMaxStringBytes) return ErrorAt(token, "the string is too long");
    const char c = Peek();
    Advance();
    if (c == '"') return absl::OkStatus();
    if (c != '\\') {
      token.text += c;
      continue;
    }
    const char escape = Peek();
    Advance();
    if (escape == 'n') {
      token.text += '\n';
    } else if (escape == 't') {
      token.text += '\t';
    } else if (escape == 'r') {
      token.text += '\r';
    } else if (escape == '"' || escape == '\\') {
      token.text += escape;
    } else if (escape == 'x' && HexDigit(Peek()) >= 0 && HexDigit(Peek(1)) >= 0) {
      token.text += static_cast<char>(HexDigit(Peek()) * 16 + HexDigit(Peek(1)));
      Advance();
      Advance();
    } else {
      return ErrorAt(token, "unknown escape in the string; expected \\\" \\\\ \\n \\t \\r \\xHH");
    }
  }
}

void Lexer::TakeDigits(Token& token) {
  while (IsDigit(Peek())) {
    token.text += Peek();
    Advance();
  }
}

absl::Status Lexer::LexNumber(Token& token) {
  token.kind = TokenKind::kNumber;
  const auto take = [&] {
    token.text += Peek();
    Advance();
  };
  if (Peek() == '-') take();
  if (text_.compare(at_, 3, "inf") == 0 && !IsIdentChar(Peek(3))) {
    for (int i = 0; i < 3; ++i) take();
    return absl::OkStatus();
  }
  if (token.text.empty() && Peek() == '0' && Peek(1) == 'x') {
    take();
    take();
    while (HexDigit(Peek()) >= 0) take();
  } else {
    TakeDigits(token);
    if (Peek() == '.') {
      take();
      TakeDigits(token);
    }
    if (Peek() == 'e' || Peek() == 'E') {
      take();
      if (Peek() == '-' || Peek() == '+') take();
      TakeDigits(token);
    }
  }
  if (token.text == "-" || IsIdentChar(Peek())) return ErrorAt(token, "malformed number");
  if (token.text.size() > kMaxNameBytes * 4) return ErrorAt(token, "the number is too long");
  return absl::OkStatus();
}

absl::StatusOr<std::unordered_set<std::string>> ValueNames(const std::string& text) {
  std::unordered_set<std::string> names;
  Lexer lexer(text);
  for (;;) {
    HT_ASSIGN_OR_RETURN(Token token, lexer.Next());
    if (token.kind == TokenKind::kEnd) return names;
    if (token.kind == TokenKind::kValue) names.insert(std::move(token.text));
  }
}

}  // namespace halftone::ir
