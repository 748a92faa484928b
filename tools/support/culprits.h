// Which of many things are to blame, in few trials.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "halftone/core/status.h"

namespace halftone::tools {

// Whether all is well with these left out.
using Works = std::function<absl::StatusOr<bool>(const std::vector<std::string>& left_out)>;

// A small set of `candidates` that `works` without, in their order; empty if it works as it is. Each
// of k culprits costs about log2 of the candidates before it, and one trial more: of 300 one is
// found in at most 11. Leaving out more must not make things worse; where it does, the set works
// but need not be the smallest. Errors: those of `works`;
// FailedPrecondition where it still fails when the search ends.
absl::StatusOr<std::vector<std::string>> FindCulprits(const std::vector<std::string>& candidates,
                                                      const Works& works);

}  // namespace halftone::tools
