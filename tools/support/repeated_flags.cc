#include "halftone/tools/support/repeated_flags.h"

#include <map>

namespace halftone::tools {
namespace {

// Sets `value` to what follows '=' in "--name=value" or "-name=value", and `separate` where the
// value is the next argument.
bool IsFlag(const std::string& argument, const std::string& name, std::string* value,
            bool* separate) {
  const size_t dashes = argument.rfind("--", 0) == 0 ? 2 : 1;
  if (argument.empty() || argument[0] != '-' || argument.compare(dashes, name.size(), name) != 0) {
    return false;
  }
  const size_t end = dashes + name.size();
  *separate = argument.size() == end;
  if (!*separate && argument[end] != '=') return false;
  *value = *separate ? "" : argument.substr(end + 1);
  return true;
}

}  // namespace

JoinedFlags::JoinedFlags(int argc, char** argv, const std::vector<std::string>& names) {
  std::map<std::string, size_t> first;  // place of each flag in arguments_
  bool flags = true;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    flags = flags && argument != "--";
    std::string value;
    bool separate = false, joined = false;
    for (const std::string& name : names) {
      if (!flags || !IsFlag(argument, name, &value, &separate)) continue;
      if (separate && i + 1 == argc) break;  // the flags library says what is missing
      if (separate) value = argv[++i];
      const auto [at, is_first] = first.emplace(name, arguments_.size());
      if (is_first) {
        arguments_.push_back("--" + name + "=" + value);
      } else {
        arguments_[at->second] += "," + value;
      }
      joined = true;
      break;
    }
    if (!joined) arguments_.push_back(argument);
  }
  for (std::string& argument : arguments_) pointers_.push_back(argument.data());
  pointers_.push_back(nullptr);
}

}  // namespace halftone::tools
