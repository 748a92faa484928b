#include "halftone/tests/meta/error_texts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <sstream>
#include <string_view>

namespace halftone::meta {
namespace {

namespace fs = std::filesystem;

// Not Internal: such an error is a fault of ours.
constexpr std::array kConstructors = {"InvalidArgument",
                                      "FailedPrecondition",
                                      "NotFound",
                                      "OutOfRange",
                                      "Unimplemented",
                                      "ResourceExhausted",
                                      "DataLoss",
                                      "AlreadyExists",
                                      "ErrorAt",
                                      "Annotate",
                                      "Fail",
                                      "InvalidArgumentError",
                                      "OutOfRangeError",
                                      "FailedPreconditionError",
                                      "NotFoundError",
                                      "UnimplementedError",
                                      "ResourceExhaustedError",
                                      "DataLossError",
                                      "AlreadyExistsError"};
constexpr size_t kMinText = 6;

struct Token {
  enum Kind { kName, kString, kChar, kOther } kind;
  std::string text;  // of a string: what is between the quotes
  int line;
};

bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Enough of C++ to tell names, strings and parentheses from each other.
class Scanner {
 public:
  explicit Scanner(const std::string& text) : text_(text) {}

  std::vector<Token> Run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.compare(at_, 2, "R\"") == 0) {
        Raw();
      } else if (c == '"') {
        Quoted(c, Token::kString);
      } else if (c == '\'') {
        Quoted(c, Token::kChar);
      } else if (IsNameChar(c)) {
        Name();
      } else {
        if (c == '\n') ++line_;
        if (std::isspace(static_cast<unsigned char>(c)) == 0) Add(Token::kOther, std::string(1, c));
        ++at_;
      }
    }
    return std::move(tokens_);
  }

 private:
  void Add(Token::Kind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), line_});
  }
  // Names and numbers, of which the quotes in 1'000 are part.
  void Name() {
    const size_t first = at_;
    const bool number = std::isdigit(static_cast<unsigned char>(text_[at_])) != 0;
    while (at_ < text_.size() && (IsNameChar(text_[at_]) || (number && text_[at_] == '\''))) ++at_;
    Add(Token::kName, text_.substr(first, at_ - first));
  }
  void Quoted(char quote, Token::Kind kind) {
    const size_t first = ++at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    at_ = std::min(at_, text_.size());
    Add(kind, text_.substr(first, at_ - first));
    if (at_ < text_.size() && text_[at_] == quote) ++at_;
  }
  void Raw() {
    const size_t open = text_.find('(', at_);
    if (open == std::string::npos) {
      at_ = text_.size();
      return;
    }
    const std::string close = ")" + text_.substr(at_ + 2, open - at_ - 2) + "\"";
    const size_t end = std::min(text_.find(close, open), text_.size());
    Add(Token::kString, text_.substr(open + 1, end - open - 1));
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = std::min(end + close.size(), text_.size());
  }

  const std::string& text_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

bool IsConstructor(const Token& token) {
  return token.kind == Token::kName &&
         std::find(kConstructors.begin(), kConstructors.end(), token.text) != kConstructors.end();
}

bool Is(const Token& token, const char* text) {
  return token.kind == Token::kOther && token.text == text;
}

std::string Trimmed(const std::string& text) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const auto first = std::find_if(text.begin(), text.end(), is_word);
  const auto last = std::find_if(text.rbegin(), text.rend(), is_word).base();
  return first < last ? std::string(first, last) : std::string();
}

// The longest literal between the parenthesis at `open` and its partner.
std::string LongestText(const std::vector<Token>& tokens, size_t open) {
  std::string longest, text;
  int depth = 0;
  for (size_t i = open; i < tokens.size(); ++i) {
    if (Is(tokens[i], "(")) ++depth;
    if (Is(tokens[i], ")") && --depth == 0) break;
    if (tokens[i].kind != Token::kString) continue;
    text += tokens[i].text;
    const bool comma = i + 2 < tokens.size() && Is(tokens[i + 1], ",");
    if (tokens[i + (comma ? 2 : 1)].kind == Token::kString) continue;
    text = Trimmed(text);
    if (text.size() > longest.size()) longest = text;
    text.clear();
  }
  return longest;
}

std::string Read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

std::vector<ErrorText> ErrorTexts(const SourceFile& file) {
  std::vector<ErrorText> texts;
  const std::vector<Token> tokens = Scanner(file.text).Run();
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!IsConstructor(tokens[i]) || !Is(tokens[i + 1], "(")) continue;
    std::string text = LongestText(tokens, i + 1);
    // Fail(loc, InvalidArgument("...")) is one error.
    const bool again = !texts.empty() && texts.back().text == text;
    if (text.size() >= kMinText && !again) {
      texts.push_back({file.path, tokens[i].line, std::move(text)});
    }
  }
  return texts;
}

namespace {

// Beside its kernels, kernels/cuda has what opens a device and gives out its memory.
bool IsKernel(const std::string& path) {
  const bool backend = path.rfind("kernels/cuda/runtime/", 0) == 0;
  // What kernels share.
  if (path == "kernels/reduce_plan.cc" || path == "kernels/supports.cc") return true;
  return path.rfind("kernels/cpu/", 0) == 0 || (path.rfind("kernels/cuda/", 0) == 0 && !backend);
}

}  // namespace

std::vector<ErrorText> Untested(const std::vector<SourceFile>& files, const std::string& tests) {
  std::vector<ErrorText> untested;
  for (const SourceFile& file : files) {
    if (file.path.rfind("tests/", 0) == 0 || IsKernel(file.path)) continue;
    for (ErrorText& error : ErrorTexts(file)) {
      if (tests.find(error.text) == std::string::npos) untested.push_back(std::move(error));
    }
  }
  return untested;
}

std::string Joined(const std::string& text) {
  std::string joined;
  for (size_t at = 0; at < text.size(); ++at) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (text[at] == '\\' && (next == '(' || next == ')')) continue;
    if (text[at] == '"' && (joined.empty() || joined.back() != '\\')) {
      // To the next literal, over blanks and at most one comma.
      size_t to = text.find_first_not_of(" \n", at + 1);
      if (to < text.size() && text[to] == ',') to = text.find_first_not_of(" \n", to + 1);
      if (to < text.size() && text[to] == '"') {
        at = to;
        continue;
      }
    }
    joined += text[at];
  }
  return joined;
}

std::string TextOfTests(const fs::path& root) {
  std::string all;
  for (auto it = fs::recursive_directory_iterator(root / "tests");
       it != fs::recursive_directory_iterator(); ++it) {
    if (it->is_directory() && it->path().filename() == "meta") it.disable_recursion_pending();
    const std::string kind = it->path().extension().string();
    if (kind == ".cc" || kind == ".h" || kind == ".py" || kind == ".txt" || kind == ".sh") {
      all += Joined(Read(it->path())) + "\n";
    }
  }
  return all;
}

}  // namespace halftone::meta
