// Checks that constructors of modules share.
#pragma once

#include <initializer_list>
#include <string>

#include "halftone/core/status.h"

namespace halftone::nn::internal {

struct NamedInt {
  const char* name;
  int64_t value;
};

// Every value at least 1. Error: InvalidArgument "Linear: in_features is -3; expected at least 1".
absl::Status CheckPositive(const char* module, std::initializer_list<NamedInt> values);

}  // namespace halftone::nn::internal
