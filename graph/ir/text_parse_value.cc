// Types, attribute values, tensors and notes of the text form.
#include "halftone/graph/ir/constant_file.h"
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/ir/number_text.h"
#include "halftone/graph/ir/text_format.h"
#include "halftone/graph/ir/text_parser.h"

namespace halftone::ir {
namespace {

bool IsNumberWord(const Token& token) { return token.IsWord("nan") || token.IsWord("inf"); }

}  // namespace

absl::StatusOr<std::string> TextParser::ParseString() {
  if (token_.kind != TokenKind::kString) return Unexpected("a string");
  std::string text = std::move(token_.text);
  HT_RETURN_IF_ERROR(Step());
  return text;
}

absl::StatusOr<int64_t> TextParser::ParseIntToken() {
  if (token_.kind != TokenKind::kNumber) return Unexpected("an integer");
  const auto value = ParseInt(token_.text);
  if (!value.ok()) return ErrorAt(token_, Message(value.status()) + "; expected an integer");
  HT_RETURN_IF_ERROR(Step());
  return *value;
}

absl::StatusOr<double> TextParser::ParseFloatToken() {
  if (token_.kind != TokenKind::kNumber && !IsNumberWord(token_)) return Unexpected("a number");
  const auto value = ParseDouble(token_.text);
  if (!value.ok()) return ErrorAt(token_, Message(value.status()));
  HT_RETURN_IF_ERROR(Step());
  return *value;
}

absl::StatusOr<DType> TextParser::ParseDTypeToken() {
  const auto dtype = token_.kind == TokenKind::kIdent ? ParseDType(token_.text) : std::nullopt;
  if (!dtype.has_value()) return Unexpected("a dtype (f64 f32 f16 bf16 i64 i32 u8 bool)");
  HT_RETURN_IF_ERROR(Step());
  return *dtype;
}

absl::StatusOr<Shape> TextParser::ParseShape() {
  const Token start = token_;
  HT_RETURN_IF_ERROR(Expect('['));
  std::vector<int64_t> dims;
  for (bool more = !token_.Is(']'); more;) {
    HT_ASSIGN_OR_RETURN(const int64_t dim, ParseIntToken());
    dims.push_back(dim);
    if (dims.size() > kMaxRank) return ErrorAt(start, Concat("rank over ", kMaxRank));
    HT_ASSIGN_OR_RETURN(more, Accept(','));
  }
  HT_RETURN_IF_ERROR(Expect(']'));
  auto shape = Shape::Make(dims);
  if (!shape.ok()) return ErrorAt(start, Message(shape.status()));
  return shape;
}

absl::StatusOr<TextParser::TypeAt> TextParser::ParseType() {
  TypeAt at{token_, {}};
  HT_ASSIGN_OR_RETURN(at.type.dtype, ParseDTypeToken());
  HT_ASSIGN_OR_RETURN(at.type.shape, ParseShape());
  if (token_.Is('{') && !token_.starts_line) {
    const Token layout = token_;
    HT_RETURN_IF_ERROR(Step());
    const std::optional<Layout> parsed =
        token_.kind == TokenKind::kIdent ? ParseLayout(token_.text) : std::nullopt;
    if (!parsed.has_value() || *parsed == Layout::kPlain) return Unexpected("nhwc or nchw16c");
    HT_RETURN_IF_ERROR(Step());
    HT_RETURN_IF_ERROR(Expect('}'));
    if (!CanLie(at.type.shape, *parsed)) return ErrorAt(layout, WhyItCannotLie(at.type, *parsed));
    at.type.layout = *parsed;
  }
  return at;
}

absl::Status TextParser::ParseTypeList(std::vector<TypeAt>& types) {
  for (bool more = true; more;) {
    HT_ASSIGN_OR_RETURN(TypeAt type, ParseType());
    types.push_back(std::move(type));
    if (types.size() > kMaxNodeInputs) {
      return ErrorAt(token_, Concat("too many types; expected at most ", kMaxNodeInputs));
    }
    HT_ASSIGN_OR_RETURN(more, Accept(','));
  }
  return absl::OkStatus();
}

absl::Status TextParser::ParseAttributes(const OpRecord& op, Attributes& attrs) {
  HT_RETURN_IF_ERROR(Expect('{'));
  for (bool more = !token_.Is('}'); more;) {
    if (token_.kind != TokenKind::kIdent) return Unexpected("the name of an attribute");
    const Token name = token_;
    const AttrSpec* spec = nullptr;
    for (const AttrSpec& candidate : op.attrs) {
      if (candidate.name == name.text) spec = &candidate;
    }
    if (spec == nullptr) {
      return ErrorAt(name, Concat(op.name, ": has no attribute ", name.ToString()));
    }
    if (attrs.Has(name.text)) {
      return ErrorAt(name, Concat(op.name, ": attribute ", name.text, " is given twice"));
    }
    HT_RETURN_IF_ERROR(Step());
    HT_RETURN_IF_ERROR(Expect('='));
    HT_ASSIGN_OR_RETURN(AttrValue value, ParseAttrValue(spec->type));
    attrs.Set(name.text, std::move(value));
    HT_ASSIGN_OR_RETURN(more, Accept(','));
  }
  return Expect('}');
}

template <typename T, typename ParseItem>
absl::StatusOr<AttrValue> TextParser::ParseList(ParseItem parse_item) {
  HT_RETURN_IF_ERROR(Expect('['));
  std::vector<T> items;
  for (bool more = !token_.Is(']'); more;) {
    HT_ASSIGN_OR_RETURN(T item, (this->*parse_item)());
    items.push_back(std::move(item));
    if (items.size() > kMaxListItems) {
      return ErrorAt(token_, Concat("the list is too long; expected at most ", kMaxListItems));
    }
    HT_ASSIGN_OR_RETURN(more, Accept(','));
  }
  HT_RETURN_IF_ERROR(Expect(']'));
  return AttrValue(std::move(items));
}

absl::StatusOr<AttrValue> TextParser::ParseAttrValue(AttrType type) {
  switch (type) {
    case AttrType::kBool: {
      const bool value = token_.IsWord("true");
      if (!value && !token_.IsWord("false")) return Unexpected("true or false");
      HT_RETURN_IF_ERROR(Step());
      return AttrValue(value);
    }
    case AttrType::kInt: {
      HT_ASSIGN_OR_RETURN(const int64_t value, ParseIntToken());
      return AttrValue(value);
    }
    case AttrType::kFloat: {
      HT_ASSIGN_OR_RETURN(const double value, ParseFloatToken());
      return AttrValue(value);
    }
    case AttrType::kString: {
      HT_ASSIGN_OR_RETURN(std::string value, ParseString());
      return AttrValue(std::move(value));
    }
    case AttrType::kDType: {
      HT_ASSIGN_OR_RETURN(const DType value, ParseDTypeToken());
      return AttrValue(value);
    }
    case AttrType::kInts:
      return ParseList<int64_t>(&TextParser::ParseIntToken);
    case AttrType::kFloats:
      return ParseList<double>(&TextParser::ParseFloatToken);
    case AttrType::kStrings:
      return ParseList<std::string>(&TextParser::ParseString);
    case AttrType::kTensor:
      return ParseTensor();
  }
  return Unexpected("an attribute value");
}

absl::StatusOr<AttrValue> TextParser::ParseTensor() {
  const Token start = token_;
  const bool splat = start.IsWord("splat"), file = start.IsWord("file");
  if (!splat && !file && !start.IsWord("dense")) return Unexpected("dense, splat or file");
  HT_RETURN_IF_ERROR(Step());
  HT_RETURN_IF_ERROR(Expect('<'));
  HT_ASSIGN_OR_RETURN(const DType dtype, ParseDTypeToken());
  HT_ASSIGN_OR_RETURN(const Shape shape, ParseShape());
  HT_RETURN_IF_ERROR(Expect('>'));
  HT_RETURN_IF_ERROR(Expect('('));
  Tensor tensor;
  if (file) {
    HT_ASSIGN_OR_RETURN(const std::string name, ParseString());
    if (constants_dir_.empty()) return ErrorAt(start, "a file of constants, but no folder for it");
    auto read = ReadConstantFile(constants_dir_, name, dtype, shape);
    if (!read.ok()) return ErrorAt(start, Message(read.status()));
    tensor = *std::move(read);
  } else {
    // Memory only for what the text can fill, or what the bound on splats allows.
    const int64_t n = shape.num_elements();
    const int64_t bytes = n * static_cast<int64_t>(SizeOf(dtype));
    if (splat && n == 0) return ErrorAt(start, "splat of no elements");
    if (splat && bytes > kMaxSplatBytes - splat_bytes_) {
      return ErrorAt(start, Concat("splat constants of more than ", kMaxSplatBytes, " bytes"));
    }
    if (splat) splat_bytes_ += bytes;
    if (!splat && n > static_cast<int64_t>(lexer_.bytes_left())) {
      return ErrorAt(start, Concat("expected ", n, " elements; the text ends before that"));
    }
    auto allocated = Tensor::Allocate(dtype, shape);
    if (!allocated.ok()) return ErrorAt(start, Message(allocated.status()));
    tensor = *std::move(allocated);
    HT_RETURN_IF_ERROR(ParseElements(start, splat, tensor));
  }
  HT_RETURN_IF_ERROR(Expect(')'));
  return AttrValue(std::move(tensor));
}

absl::Status TextParser::ParseElements(const Token& start, bool splat, Tensor& tensor) {
  const int64_t n = splat ? 1 : tensor.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0 && !token_.Is(',')) {
      return ErrorAt(token_, Concat("got ", i, " elements; expected ", n));
    }
    if (i > 0) HT_RETURN_IF_ERROR(Step());
    if (token_.kind != TokenKind::kNumber && token_.kind != TokenKind::kIdent) {
      return Unexpected("an element");
    }
    if (absl::Status status = ParseElement(token_.text, tensor.dtype(), tensor.raw(), i);
        !status.ok()) {
      return ErrorAt(token_, Message(status));
    }
    HT_RETURN_IF_ERROR(Step());
  }
  if (token_.Is(',')) return ErrorAt(start, Concat("more than ", n, " elements"));
  if (!splat) return absl::OkStatus();
  const size_t size = SizeOf(tensor.dtype());
  char* data = static_cast<char*>(tensor.raw());
  for (size_t filled = size; filled < tensor.num_bytes();) {
    const size_t more = std::min(filled, tensor.num_bytes() - filled);
    std::memcpy(data + filled, data, more);
    filled += more;
  }
  return absl::OkStatus();
}

absl::Status TextParser::ParseNotes(Notes& notes) {
  while (!token_.starts_line) {
    if (token_.Is('@')) {
      HT_RETURN_IF_ERROR(Step());
      HT_ASSIGN_OR_RETURN(notes.scope, ParseString());
    } else if (token_.IsWord("loc")) {
      HT_RETURN_IF_ERROR(Step());
      HT_RETURN_IF_ERROR(Expect('('));
      HT_ASSIGN_OR_RETURN(notes.location.file, ParseString());
      HT_RETURN_IF_ERROR(Expect(':'));
      const Token at = token_;
      HT_ASSIGN_OR_RETURN(const int64_t line, ParseIntToken());
      if (line < 0 || line > INT32_MAX) return ErrorAt(at, "line number out of range");
      notes.location.line = static_cast<int>(line);
      HT_RETURN_IF_ERROR(Expect(')'));
    } else if (token_.IsWord("pass")) {
      HT_RETURN_IF_ERROR(Step());
      HT_RETURN_IF_ERROR(Expect('('));
      HT_ASSIGN_OR_RETURN(notes.provenance.pass, ParseString());
      HT_RETURN_IF_ERROR(Expect(','));
      HT_ASSIGN_OR_RETURN(notes.provenance.from, ParseString());
      HT_RETURN_IF_ERROR(Expect(')'));
    } else if (token_.IsWord("recompute")) {
      HT_RETURN_IF_ERROR(Step());
      HT_RETURN_IF_ERROR(Expect('('));
      HT_ASSIGN_OR_RETURN(notes.recompute, ParseString());
      HT_RETURN_IF_ERROR(Expect(')'));
    } else if (token_.IsWord("amp")) {
      HT_RETURN_IF_ERROR(ParseAmpNote(notes));
    } else if (token_.IsWord("keep_f32") || token_.IsWord("allow_low")) {
      notes.amp_request = token_.text == "keep_f32" ? -1 : 1;
      HT_RETURN_IF_ERROR(Step());
    } else {
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::Status TextParser::ParseAmpNote(Notes& notes) {
  HT_RETURN_IF_ERROR(Step());
  HT_RETURN_IF_ERROR(Expect('('));
  if (token_.kind == TokenKind::kString) {
    HT_ASSIGN_OR_RETURN(notes.amp.reason, ParseString());
    return Expect(')');
  }
  const auto amp_class =
      token_.kind == TokenKind::kIdent ? ParseAmpClass(token_.text) : std::nullopt;
  if (!amp_class.has_value()) return Unexpected("allow, infer, clear or deny");
  notes.amp.decided = true;
  notes.amp.amp_class = *amp_class;
  HT_RETURN_IF_ERROR(Step());
  HT_RETURN_IF_ERROR(Expect(','));
  HT_ASSIGN_OR_RETURN(notes.amp.dtype, ParseDTypeToken());
  HT_RETURN_IF_ERROR(Expect(','));
  HT_ASSIGN_OR_RETURN(notes.amp.reason, ParseString());
  if (token_.Is(',')) {
    HT_RETURN_IF_ERROR(Step());
    HT_ASSIGN_OR_RETURN(notes.amp.raised_from, ParseDTypeToken());
  }
  return Expect(')');
}

}  // namespace halftone::ir
