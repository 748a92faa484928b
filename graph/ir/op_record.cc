#include "halftone/graph/ir/op.h"

namespace halftone::ir {

std::string DTypeSet::ToString() const {
  std::string text;
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (!Contains(dtype)) continue;
    if (!text.empty()) text += ' ';
    text += Name(dtype);
  }
  return text;
}

const char* Name(AmpClass amp_class) {
  switch (amp_class) {
    case AmpClass::kAllow:
      return "allow";
    case AmpClass::kInfer:
      return "infer";
    case AmpClass::kClear:
      return "clear";
    case AmpClass::kDeny:
      return "deny";
  }
  return "?";
}

std::optional<AmpClass> ParseAmpClass(const std::string& name) {
  for (AmpClass c : {AmpClass::kAllow, AmpClass::kInfer, AmpClass::kClear, AmpClass::kDeny}) {
    if (name == Name(c)) return c;
  }
  return std::nullopt;
}

}  // namespace halftone::ir
