#include "halftone/tools/support/culprits.h"

#include <algorithm>

namespace halftone::tools {

// The shortest beginning of the list that must be left out ends in a culprit. With that one out for
// good, the search goes on in what comes before it.
absl::StatusOr<std::vector<std::string>> FindCulprits(const std::vector<std::string>& candidates,
                                                      const Works& works) {
  std::vector<std::string> found;
  size_t limit = candidates.size();  // leaving out these, and what was found, works
  while (true) {
    HT_ASSIGN_OR_RETURN(const bool enough, works(found));
    if (enough) break;
    if (limit == 0) {
      return FailedPrecondition("it still fails with ", found.size(), " of ", candidates.size(),
                                " left out");
    }
    size_t fails = 0, suffices = limit;
    while (suffices - fails > 1) {
      const size_t middle = fails + (suffices - fails) / 2;
      std::vector<std::string> left_out = found;
      left_out.insert(left_out.end(), candidates.begin(),
                      candidates.begin() + static_cast<std::ptrdiff_t>(middle));
      HT_ASSIGN_OR_RETURN(const bool works_without, works(left_out));
      (works_without ? suffices : fails) = middle;
    }
    limit = suffices - 1;
    found.push_back(candidates[limit]);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace halftone::tools
