#include "halftone/tools/support/culprits.h"

#include <algorithm>
#include <utility>

namespace halftone::tools {

// The shortest beginning of the list that must be left out ends in a culprit. With that one out for
// good, the search goes on in what comes before it.
absl::StatusOr<std::vector<std::string>> FindCulprits(const std::vector<std::string>& candidates,
                                                      const Works& works, size_t suspects) {
  std::vector<std::string> found;
  size_t limit = candidates.size();  // leaving out these, and what was found, works
  const auto first = [&candidates](size_t count) {
    return std::vector<std::string>(candidates.begin(),
                                    candidates.begin() + static_cast<std::ptrdiff_t>(count));
  };
  size_t known_to_fail = 0;  // leaving out so many of the first; in the first round
  // Many suspects are hardly fewer than all: the trial would be one too many.
  if (suspects > 0 && 2 * suspects <= candidates.size()) {
    HT_ASSIGN_OR_RETURN(const bool explains, works(first(suspects)));
    (explains ? limit : known_to_fail) = suspects;
  }
  while (true) {
    if (known_to_fail == 0) {
      HT_ASSIGN_OR_RETURN(const bool enough, works(found));
      if (enough) break;
    }
    if (limit == 0) {
      return FailedPrecondition("it still fails with ", found.size(), " of ", candidates.size(),
                                " left out");
    }
    size_t fails = std::exchange(known_to_fail, 0), suffices = limit;
    while (suffices - fails > 1) {
      const size_t middle = fails + (suffices - fails) / 2;
      std::vector<std::string> left_out = found;
      const std::vector<std::string> beginning = first(middle);
      left_out.insert(left_out.end(), beginning.begin(), beginning.end());
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
