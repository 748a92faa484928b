#include "halftone/graph/runtime/load_options.h"

#include "halftone/graph/runtime/load_rename.h"

namespace halftone::runtime {

std::string LoadReport::ToString() const {
  std::vector<std::string> types;
  for (const LoadMismatch& m : mismatched) {
    types.push_back(Concat("\"", m.name, "\" is ", m.got, ", expected ", m.expected));
  }
  std::vector<std::string> parts;
  if (!types.empty()) parts.push_back("mismatched: " + JoinSome(types, "; "));
  if (!missing.empty()) parts.push_back("missing: " + JoinSome(missing, ", "));
  if (!unexpected.empty()) parts.push_back("unexpected: " + JoinSome(unexpected, ", "));
  if (!unused_renames.empty()) {
    parts.push_back("renames that fit no name: " + JoinSome(unused_renames, ", "));
  }
  return JoinSome(parts, "; ");
}

}  // namespace halftone::runtime
