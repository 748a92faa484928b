// Variables and their initialisers, to and from attributes.
#include <cmath>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/number_text.h"
#include "halftone/graph/ir/text_format.h"

namespace halftone::ir {

const char* Name(VariableKind kind) {
  switch (kind) {
    case VariableKind::kParameter:
      return "parameter";
    case VariableKind::kBuffer:
      return "buffer";
    case VariableKind::kOptimizer:
      return "optimizer";
    case VariableKind::kScaler:
      return "scaler";
    case VariableKind::kCounter:
      return "counter";
  }
  return "?";
}

std::optional<VariableKind> ParseVariableKind(const std::string& name) {
  for (VariableKind kind :
       {VariableKind::kParameter, VariableKind::kBuffer, VariableKind::kOptimizer,
        VariableKind::kScaler, VariableKind::kCounter}) {
    if (name == Name(kind)) return kind;
  }
  return std::nullopt;
}

std::string Initializer::ToString() const {
  switch (kind) {
    case Kind::kConstant:
      return "constant(" + FormatDouble(a) + ")";
    case Kind::kUniform:
      return "uniform(" + FormatDouble(a) + "," + FormatDouble(b) + ")";
    case Kind::kNormal:
      return "normal(" + FormatDouble(a) + "," + FormatDouble(b) + ")";
  }
  return "?";
}

absl::StatusOr<Initializer> Initializer::Parse(const std::string& text) {
  const absl::Status malformed =
      InvalidArgument("initialiser ", Quote(text.substr(0, 80)),
                      "; expected constant(a), uniform(lower,upper) or normal(mean,deviation)");
  const size_t open = text.find('('), comma = text.find(',');
  if (open == std::string::npos || text.back() != ')') return malformed;
  const std::string word = text.substr(0, open);
  const bool two = comma != std::string::npos;
  const size_t close = text.size() - 1;
  if (two && comma < open) return malformed;

  Initializer init;
  if (word == "constant" && !two) {
    init.kind = Kind::kConstant;
  } else if (word == "uniform" && two) {
    init.kind = Kind::kUniform;
  } else if (word == "normal" && two) {
    init.kind = Kind::kNormal;
  } else {
    return malformed;
  }
  const auto a = ParseDouble(text.substr(open + 1, (two ? comma : close) - open - 1));
  if (!a.ok()) return malformed;
  init.a = *a;
  if (two) {
    const auto b = ParseDouble(text.substr(comma + 1, close - comma - 1));
    if (!b.ok()) return malformed;
    init.b = *b;
  }
  if (init.kind == Kind::kUniform && !(init.a <= init.b && std::isfinite(init.b - init.a))) {
    return InvalidArgument("initialiser ", text, ": expected finite bounds, lower <= upper");
  }
  if (init.kind == Kind::kNormal &&
      !(std::isfinite(init.a) && std::isfinite(init.b) && init.b >= 0)) {
    return InvalidArgument("initialiser ", text, ": expected a finite mean and deviation >= 0");
  }
  return init;
}

Attributes ToAttributes(const Variable& variable) {
  const absl::Span<const int64_t> dims = variable.type.shape.dims();
  return {{"name", variable.name},
          {"dtype", variable.type.dtype},
          {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
          {"kind", std::string(Name(variable.kind))},
          {"trainable", variable.trainable},
          {"init", variable.init.ToString()}};
}

absl::StatusOr<Variable> VariableFromAttributes(const Attributes& attrs) {
  Variable variable;
  variable.name = attrs.GetString("name");
  variable.type.dtype = attrs.GetDType("dtype");
  HT_ASSIGN_OR_RETURN(variable.type.shape, Shape::Make(attrs.GetInts("shape")));
  const auto kind = ParseVariableKind(attrs.GetString("kind"));
  if (!kind.has_value()) {
    return InvalidArgument("kind ", FormatAttrBriefly(attrs.GetString("kind")),
                           "; expected parameter, buffer, optimizer, scaler or counter");
  }
  variable.kind = *kind;
  variable.trainable = attrs.GetBool("trainable");
  HT_ASSIGN_OR_RETURN(variable.init, Initializer::Parse(attrs.GetString("init")));
  return variable;
}

}  // namespace halftone::ir
