// docs/operators.md: what every operator of a registry is, for readers.
#pragma once

#include <string>

#include "halftone/graph/ir/op.h"

namespace halftone::ir {

// The catalogue in Markdown: a table of all operators, then a section of each (OpRecord::
// ToCatalogue), in the order of the names.
std::string Catalogue(const OpRegistry& registry);

}  // namespace halftone::ir
