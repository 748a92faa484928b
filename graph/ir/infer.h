// The checks that every node passes, whether it comes from the builder, a file or a pass.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/ir/op.h"

namespace halftone::ir {

// Adds absent attributes that have a default, turns an int given for a float into one, and checks
// names and types. `label` starts the message: "softmax(%12)". Errors: InvalidArgument.
absl::Status CompleteAttributes(const OpRecord& op, const std::string& label, Attributes& attrs);

// Checks the number and dtypes of the inputs and runs the op's inference. Requires: attributes
// complete. Errors: InvalidArgument and what the inference gives; Internal if the inference gives a
// number of types that is not the record's number of outputs (ops with a variadic input may).
absl::StatusOr<std::vector<ValueType>> InferTypes(const OpRecord& op, const std::string& label,
                                                  const std::vector<ValueType>& inputs,
                                                  const Attributes& attrs);

}  // namespace halftone::ir
