// The parser of a policy's file form (policy.h).
#pragma once

#include <string>

#include "halftone/passes/amp/policy.h"

namespace halftone::amp {

// The longest entry that a stored policy may have, in bytes.
inline constexpr size_t kMaxEntry = 256;

// Untrusted text. Errors: InvalidArgument "line 3: ...".
absl::StatusOr<Policy> ParsePolicyText(const std::string& text);

// `entry` in quotes, as protobuf's text has it.
std::string Quoted(const std::string& entry);

}  // namespace halftone::amp
