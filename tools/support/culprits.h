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
// found in at most 11. The first `suspects` of them are tried together before, and where that works
// the search stays among them: one of 20 suspects is found in at most 8 trials, one of 300 that is
// no suspect in at most 11 still. Leaving out more must not make things worse; where it does, the set works
// but need not be the smallest. Errors: those of `works`;
// FailedPrecondition where it still fails when the search ends. Requires: suspects <= candidates.
absl::StatusOr<std::vector<std::string>> FindCulprits(const std::vector<std::string>& candidates,
                                                      const Works& works, size_t suspects = 0);

}  // namespace halftone::tools
