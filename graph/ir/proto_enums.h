// Our enumerations and those of graph.proto. Each list below pairs them by hand: the numbers in a
// file never change, ours may.
#pragma once

#include <optional>

#include "halftone/core/dtype.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::ir {

// The number in a file, and back; nothing for a number that this build does not know.
int ToProtoNumber(DType dtype);
int ToProtoNumber(Layout layout);
int ToProtoNumber(VariableKind kind);
int ToProtoNumber(AmpClass amp_class);
std::optional<DType> DTypeFromProto(int number);
std::optional<Layout> LayoutFromProto(int number);
std::optional<VariableKind> VariableKindFromProto(int number);
std::optional<AmpClass> AmpClassFromProto(int number);

}  // namespace halftone::ir
