// The protobuf form of a policy (proto/amp_policy.proto).
#pragma once

#include <string>

#include "halftone/passes/amp/policy.h"

namespace halftone::amp {

// Serialised halftone.AmpPolicyProto.
std::string ToProtoBytes(const Policy& policy);
// Untrusted bytes. Errors: DataLoss (not a policy), InvalidArgument (an unknown version or dtype,
// an entry that is empty or longer than 256 bytes).
absl::StatusOr<Policy> PolicyFromProtoBytes(const std::string& bytes);

}  // namespace halftone::amp
