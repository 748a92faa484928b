#include "halftone/core/io/npy_header.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

namespace halftone::io {
namespace {

struct TypeCode {
  const char* code;
  DType dtype;
};
// The first code of a dtype is the one written.
constexpr TypeCode kTypeCodes[] = {
    {"<f8", DType::kF64},    {"<f4", DType::kF32},    {"<f2", DType::kF16},
    {"<V2", DType::kBF16},   {"|V2", DType::kBF16},   {"<V1", DType::kF8E4M3},
    {"|V1", DType::kF8E4M3}, {"<f1", DType::kF8E5M2}, {"<i8", DType::kI64},
    {"<i4", DType::kI32},    {"|u1", DType::kU8},     {"|b1", DType::kBool},
};

// A cursor over the dictionary. Whatever is not the expected piece is an error that says where.
class HeaderParser {
 public:
  explicit HeaderParser(const std::string& text) : text_(text) {}

  absl::StatusOr<NpyHeader> Parse() {
    HT_RETURN_IF_ERROR(Expect('{'));
    while (!Take('}')) {
      HT_RETURN_IF_ERROR(ParseEntry());
      if (Take(',')) continue;
      HT_RETURN_IF_ERROR(Expect('}'));
      break;
    }
    SkipSpace();
    if (at_ != text_.size()) return Unexpected("the end of the header");
    if (!dtype_) return Missing("descr");
    if (!fortran_order_) return Missing("fortran_order");
    if (!shape_) return Missing("shape");
    return NpyHeader{*dtype_, *fortran_order_, *shape_};
  }

 private:
  absl::Status ParseEntry() {
    HT_ASSIGN_OR_RETURN(const std::string key, String());
    HT_RETURN_IF_ERROR(Expect(':'));
    if (key == "descr" && !dtype_) return ParseDescr();
    if (key == "fortran_order" && !fortran_order_) return ParseOrder();
    if (key == "shape" && !shape_) return ParseShape();
    return InvalidArgument("npy header: key '", key,
                           "'; expected descr, fortran_order and shape, each once");
  }

  absl::Status ParseDescr() {
    if (Peek() == '[') {
      return InvalidArgument("npy element type is a structure; expected ", TypeCodes());
    }
    HT_ASSIGN_OR_RETURN(const std::string descr, String());
    for (const TypeCode& type : kTypeCodes) {
      if (descr == type.code) dtype_ = type.dtype;
    }
    if (dtype_) return absl::OkStatus();
    return InvalidArgument("npy element type '", descr, "'; expected ", TypeCodes());
  }

  absl::Status ParseOrder() {
    if (TakeWord("False")) {
      fortran_order_ = false;
    } else if (TakeWord("True")) {
      fortran_order_ = true;
    } else {
      return Unexpected("False or True");
    }
    return absl::OkStatus();
  }

  absl::Status ParseShape() {
    HT_RETURN_IF_ERROR(Expect('('));
    std::vector<int64_t> dims;
    bool comma = true;
    while (!Take(')')) {
      if (!comma) return Unexpected("','");
      HT_ASSIGN_OR_RETURN(const int64_t dim, Extent());
      dims.push_back(dim);
      comma = Take(',');
    }
    // "(3)" is a number, not a tuple.
    if (dims.size() == 1 && !comma) {
      return InvalidArgument("npy header: shape (", dims[0], ") is no tuple; expected (", dims[0],
                             ",)");
    }
    HT_ASSIGN_OR_RETURN(shape_, Shape::Make(dims));
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Extent() {
    SkipSpace();
    int64_t value = 0;
    const size_t first = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value * 10 + (text_[at_] - '0');
      if (value > kMaxElements) {
        return InvalidArgument("npy header: extent of more than ", kMaxElements, " at byte ",
                               first);
      }
    }
    if (at_ == first) return Unexpected("an extent");
    return value;
  }

  // Without escapes, which no key and no type has.
  absl::StatusOr<std::string> String() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Unexpected("a quoted name");
    const size_t first = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) {
      const char c = text_[at_];
      if (c < ' ' || c > '~' || c == '\\' || at_ - first >= kMaxNameBytes) {
        return Unexpected("a short name in ASCII");
      }
      ++at_;
    }
    if (at_ == text_.size()) return Unexpected("the end of a name");
    return text_.substr(first, at_++ - first);
  }

  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  // The next character that is no space; 0 at the end.
  char Peek() {
    SkipSpace();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(const char* word) {
    SkipSpace();
    const size_t size = std::strlen(word);
    if (text_.compare(at_, size, word) != 0) return false;
    at_ += size;
    return true;
  }
  absl::Status Expect(char c) {
    return Take(c) ? absl::OkStatus() : Unexpected(Concat("'", c, "'"));
  }
  absl::Status Unexpected(const std::string& expected) const {
    return InvalidArgument("npy header: at byte ", at_, " of ", text_.size(), ": expected ",
                           expected);
  }
  static absl::Status Missing(const char* key) {
    return InvalidArgument("npy header: has no ", key,
                           "; expected descr, fortran_order and shape, each once");
  }
  static std::string TypeCodes() {
    std::string codes;
    for (const TypeCode& type : kTypeCodes) codes += Concat(codes.empty() ? "" : " ", type.code);
    return codes;
  }

  static constexpr size_t kMaxNameBytes = 64;
  const std::string& text_;
  size_t at_ = 0;
  std::optional<DType> dtype_;
  std::optional<bool> fortran_order_;
  std::optional<Shape> shape_;
};

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(const std::string& text) {
  return HeaderParser(text).Parse();
}

std::string FormatNpyHeader(const NpyHeader& header) {
  const auto* const type =
      std::find_if(std::begin(kTypeCodes), std::end(kTypeCodes),
                   [&header](const TypeCode& t) { return t.dtype == header.dtype; });
  std::string text =
      Concat("{'descr': '", type->code,
             "', 'fortran_order': ", header.fortran_order ? "True" : "False", ", 'shape': (");
  for (const int64_t dim : header.shape.dims()) {
    text += Concat(text.back() == '(' ? "" : " ", dim, ",");
  }
  if (header.shape.rank() > 1) text.pop_back();  // only a tuple of one needs its comma
  return text + "), }";
}

}  // namespace halftone::io
