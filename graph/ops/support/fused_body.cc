#include "halftone/graph/ops/support/fused_body.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "halftone/graph/ir/infer.h"
#include "halftone/graph/ir/text_format.h"
#include "halftone/graph/ir/text_lex.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::ops {
namespace {

using ir::Token;
using ir::TokenKind;

bool IsWord(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

class BodyParser {
 public:
  BodyParser(const std::string& text, int num_inputs) : lexer_(text), num_inputs_(num_inputs) {}

  absl::StatusOr<std::vector<FusedStep>> Parse() {
    HT_RETURN_IF_ERROR(Next());
    HT_ASSIGN_OR_RETURN(const int result, Operand());
    if (token_.kind != TokenKind::kEnd) return Expected("the end");
    if (result < num_inputs_) return InvalidArgument("computes nothing; expected an op");
    for (int i = 0; i < num_inputs_; ++i) {
      if (!read_[static_cast<size_t>(i)]) return InvalidArgument("does not read %", i);
    }
    return std::move(steps_);
  }

 private:
  absl::Status Next() {
    HT_ASSIGN_OR_RETURN(token_, lexer_.Next());
    return absl::OkStatus();
  }
  absl::Status Expected(const std::string& what) const {
    return ir::ErrorAt(token_, Concat("got ", token_.ToString(), "; expected ", what));
  }
  absl::Status Take(char punct) {
    if (!token_.Is(punct)) return Expected(Concat("'", std::string(1, punct), "'"));
    return Next();
  }

  // An input, or a call of an op. Nesting is bounded by the number of steps.
  absl::StatusOr<int> Operand() {
    if (token_.kind == TokenKind::kValue) return Input();
    if (token_.kind != TokenKind::kIdent) return Expected("an input or an op");
    const ir::OpRecord* op = ir::OpRegistry::Global().Find(token_.text);
    if (op == nullptr) return Expected("an op");
    if (const std::string why = WhyNotFusable(*op); !why.empty()) {
      return ir::ErrorAt(token_, Concat(op->name, " ", why));
    }
    if (++calls_ > kMaxFusedSteps) {
      return InvalidArgument("has more than ", kMaxFusedSteps, " ops");
    }
    HT_RETURN_IF_ERROR(Next());
    FusedStep step;
    step.op = op;
    HT_RETURN_IF_ERROR(Take('('));
    for (bool first = true; !token_.Is(')'); first = false) {
      if (!first) HT_RETURN_IF_ERROR(Take(','));
      if (step.operands.size() == op->inputs.size()) return Expected("')'");
      HT_ASSIGN_OR_RETURN(const int operand, Operand());
      step.operands.push_back(operand);
    }
    HT_RETURN_IF_ERROR(Next());
    HT_RETURN_IF_ERROR(AttributesOf(step));
    steps_.push_back(std::move(step));
    return num_inputs_ + static_cast<int>(steps_.size()) - 1;
  }

  absl::StatusOr<int> Input() {
    int input = -1;
    const char* end = token_.text.data() + token_.text.size();
    const auto parsed = std::from_chars(token_.text.data(), end, input);
    if (parsed.ec != std::errc() || parsed.ptr != end || input < 0 || input >= num_inputs_) {
      return Expected(Concat("%0 to %", num_inputs_ - 1));
    }
    read_[static_cast<size_t>(input)] = true;
    HT_RETURN_IF_ERROR(Next());
    return input;
  }

  absl::Status AttributesOf(FusedStep& step) {
    if (token_.Is('{')) {
      do {
        HT_RETURN_IF_ERROR(Next());
        if (token_.kind != TokenKind::kIdent) return Expected("an attribute");
        const std::string name = token_.text;
        HT_RETURN_IF_ERROR(Next());
        HT_RETURN_IF_ERROR(Take('='));
        HT_ASSIGN_OR_RETURN(ir::AttrValue value, AttributeValue());
        step.attrs.Set(name, std::move(value));
        HT_RETURN_IF_ERROR(Next());
      } while (token_.Is(','));
      HT_RETURN_IF_ERROR(Take('}'));
    }
    return ir::CompleteAttributes(*step.op, step.op->name, step.attrs);
  }

  // Of the token; what elementwise ops have as attributes.
  absl::StatusOr<ir::AttrValue> AttributeValue() const {
    const std::string& text = token_.text;
    if (token_.kind == TokenKind::kString) return ir::AttrValue(text);
    if (token_.kind == TokenKind::kNumber) {
      const char* end = text.data() + text.size();
      int64_t whole = 0;
      if (const auto at = std::from_chars(text.data(), end, whole);
          at.ec == std::errc() && at.ptr == end) {
        return ir::AttrValue(whole);
      }
      double number = 0;
      if (const auto at = std::from_chars(text.data(), end, number);
          at.ec == std::errc() && at.ptr == end) {
        return ir::AttrValue(number);
      }
      return Expected("a number in range");
    }
    if (token_.kind != TokenKind::kIdent) return Expected("a value");
    if (text == "true" || text == "false") return ir::AttrValue(text == "true");
    if (const std::optional<DType> dtype = ParseDType(text)) return ir::AttrValue(*dtype);
    if (text == "inf") return ir::AttrValue(std::numeric_limits<double>::infinity());
    return ir::AttrValue(text);
  }

  ir::Lexer lexer_;
  int num_inputs_;
  Token token_;
  int calls_ = 0;
  std::vector<FusedStep> steps_;
  std::array<bool, kMaxFusedInputs> read_{};
};

std::string AttributesText(const FusedStep& step) {
  std::string text;
  for (const ir::AttrSpec& spec : step.op->attrs) {
    const ir::AttrValue& value = *step.attrs.Find(spec.name);
    if (spec.default_value.has_value() && ir::Equal(value, *spec.default_value)) continue;
    const auto* word = std::get_if<std::string>(&value);
    const bool bare = word != nullptr && IsWord(*word) && !ParseDType(*word).has_value() &&
                      *word != "true" && *word != "false" && *word != "inf";
    text +=
        Concat(text.empty() ? " {" : ", ", spec.name, "=", bare ? *word : ir::FormatAttr(value));
  }
  return text.empty() ? text : text + "}";
}

// Extents in the order of a layout's memory, those that broadcasting adds included.
std::vector<int64_t> InMemoryOrder(const Shape& shape, int rank, ir::Layout layout) {
  std::vector<int64_t> extents(static_cast<size_t>(rank - shape.rank()), 1);
  extents.insert(extents.end(), shape.dims().begin(), shape.dims().end());
  if (layout == ir::Layout::kChannelsLast) {
    std::rotate(extents.begin() + 1, extents.begin() + 2, extents.end());
  }
  return extents;
}

absl::Status CheckAccesses(const std::string& label, const std::vector<ir::ValueType>& inputs,
                           const ir::ValueType& result) {
  int64_t period = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<FusedAccess> access = AccessOf(inputs[i], result);
    if (!access.has_value()) {
      return InvalidArgument(label, ": input ", i, " is ", inputs[i], "; expected the type of the ",
                             "result, ", result,
                             result.layout == ir::Layout::kChannelBlocks
                                 ? ", an element for each channel, or one element"
                                 : ", its last extents in memory, or one element");
    }
    if (access->kind != FusedAccess::Kind::kRow) continue;
    if (period != 0 && access->period != period) {
      return InvalidArgument(label, ": input ", i, " has ", access->period, " elements; expected ",
                             period, " as another input that repeats");
    }
    period = access->period;
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<FusedAccess> AccessOf(const ir::ValueType& input, const ir::ValueType& result) {
  const auto& extents = input.shape.dims();
  const bool is_line =
      std::count_if(extents.begin(), extents.end(), [](int64_t extent) { return extent > 1; }) <= 1;
  if (input.layout != result.layout && !is_line) return std::nullopt;
  if (input.shape == result.shape) return FusedAccess{};
  if (input.num_elements() == 1) return FusedAccess{FusedAccess::Kind::kOne};
  const int rank = result.shape.rank();
  const auto from = InMemoryOrder(input.shape, rank, result.layout);
  if (result.layout == ir::Layout::kChannelBlocks) {
    if (from != std::vector<int64_t>{1, result.shape[1], 1, 1}) return std::nullopt;
    return FusedAccess{FusedAccess::Kind::kChannels,
                       result.shape[2] * result.shape[3] * ir::kChannelBlock};
  }
  const auto to = InMemoryOrder(result.shape, rank, result.layout);
  const auto repeated = std::mismatch(from.rbegin(), from.rend(), to.rbegin()).first;
  if (!std::all_of(repeated, from.rend(), [](int64_t extent) { return extent == 1; })) {
    return std::nullopt;
  }
  return FusedAccess{FusedAccess::Kind::kRow, input.num_elements()};
}

std::string WhyNotFusable(const ir::OpRecord& op) {
  if (op.fusion != ir::FusionClass::kElementwise || op.layout.kind != ir::LayoutClass::kFollows) {
    return "is not elementwise";
  }
  if (op.outputs.size() != 1 || op.is_variadic()) return "has more than one result";
  if (op.is_random) return "is random";
  if (op.has_side_effect || op.is_marker || op.communicates || op.can_fault())
    return "does more than compute";
  return op.name == "fused" ? "has a body of its own" : "";
}

absl::StatusOr<FusedBody> FusedBody::Parse(const std::string& text, int num_inputs) {
  if (num_inputs < 1 || num_inputs > kMaxFusedInputs) {
    return InvalidArgument("has ", num_inputs, " inputs; expected 1 to ", kMaxFusedInputs);
  }
  HT_ASSIGN_OR_RETURN(std::vector<FusedStep> steps, BodyParser(text, num_inputs).Parse());
  return FusedBody(num_inputs, std::move(steps));
}

std::string FusedBody::ToString() const {
  std::vector<std::string> texts;
  for (int i = 0; i < num_inputs_; ++i) texts.push_back(Concat("%", i));
  for (const FusedStep& step : steps_) {
    std::string text = step.op->name + "(";
    for (size_t i = 0; i < step.operands.size(); ++i) {
      if (i > 0) text += ", ";
      text += texts[static_cast<size_t>(step.operands[i])];
    }
    texts.push_back(text + ")" + AttributesText(step));
  }
  return texts.back();
}

absl::StatusOr<std::vector<ir::ValueType>> FusedBody::Infer(
    const std::string& label, const std::vector<ir::ValueType>& inputs) const {
  std::vector<ir::ValueType> types = inputs;
  for (const FusedStep& step : steps_) {
    std::vector<ir::ValueType> operands;
    for (const int operand : step.operands) operands.push_back(types[static_cast<size_t>(operand)]);
    const std::string where = Concat(label, ": ", step.op->name);
    HT_ASSIGN_OR_RETURN(const std::vector<ir::ValueType> result,
                        ir::InferTypes(*step.op, where, operands, step.attrs));
    types.push_back(result[0]);
  }
  types.erase(types.begin(), types.begin() + num_inputs_);
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].shape != types.back().shape || types[i].layout != types.back().layout) {
      return InvalidArgument(label, ": ", steps_[i].op->name, " gives ", types[i],
                             "; expected the shape and layout of the result, ", types.back());
    }
  }
  HT_RETURN_IF_ERROR(CheckAccesses(label, inputs, types.back()));
  return types;
}

std::vector<ir::Expr> FusedBody::Build(ir::Builder& b, const std::vector<ir::Expr>& inputs) const {
  std::vector<ir::Expr> values = inputs;
  for (const FusedStep& step : steps_) {
    std::vector<ir::Expr> operands;
    for (const int operand : step.operands)
      operands.push_back(values[static_cast<size_t>(operand)]);
    values.push_back(b.Op(step.op->name, operands, step.attrs));
  }
  values.erase(values.begin(), values.begin() + num_inputs_);
  return values;
}

}  // namespace halftone::ops
