// Flags that may be given several times.
#pragma once

#include <string>
#include <vector>

namespace halftone::tools {

// Arguments in which all occurrences of each flag of `names` ("--feed a --feed=b") are one
// ("--feed=a,b"), at the place of the first: the flags library keeps only the last occurrence.
// Nothing after "--" is a flag.
class JoinedFlags {
 public:
  JoinedFlags(int argc, char** argv, const std::vector<std::string>& names);
  int argc() const { return static_cast<int>(pointers_.size()) - 1; }
  // Ends with a null pointer, as main's does. Valid as long as this object.
  char** argv() { return pointers_.data(); }

 private:
  std::vector<std::string> arguments_;
  std::vector<char*> pointers_;
};

}  // namespace halftone::tools
