#include "halftone/tests/meta/public_headers.h"

#include <algorithm>
#include <regex>
#include <sstream>

namespace halftone::meta {
namespace {

bool IsBelow(const std::string& path, const std::string& folder) {
  return path.compare(0, folder.size(), folder) == 0;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Calls visit(number, line) for every line, from 1.
template <typename Visit>
void ForEachLine(const SourceFile& file, const Visit& visit) {
  std::istringstream lines(file.text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) visit(++number, line);
}

// What `#include "halftone/X"` of `line` names: X; empty if it includes no file of Halftone.
std::string OwnInclude(const std::string& line) {
  static const std::regex include(R"(^\s*#\s*include\s*["<]halftone/([^">]+)[">])");
  std::smatch match;
  return std::regex_search(line, match, include) ? match[1].str() : "";
}

std::string At(const SourceFile& file, int line, const std::string& what) {
  return file.path + ":" + std::to_string(line) + ": " + what;
}

// Whether `name`, as a comment names it ("update_nodes.h", "passes/pass.h"), is a listed header.
bool IsListed(const std::string& name, const PublicHeaders& listed) {
  return std::any_of(listed.begin(), listed.end(), [&name](const std::string& header) {
    return header == name || EndsWith(header, "/" + name);
  });
}

bool IsForUsers(const std::string& path) {
  return path == "README.md" || IsBelow(path, "docs/") || IsBelow(path, "examples/") ||
         (IsBelow(path, "tests/install/") && EndsWith(path, ".cc"));
}

}  // namespace

std::vector<std::string> ListedHeaders(const std::string& text) {
  std::vector<std::string> listed;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') listed.push_back(line);
  }
  return listed;
}

std::vector<std::string> CheckList(const std::vector<std::string>& listed,
                                   const std::vector<SourceFile>& files) {
  std::vector<std::string> bad;
  PublicHeaders seen;
  for (const std::string& header : listed) {
    if (!seen.insert(header).second) bad.push_back(header + ":1: is listed twice");
    const bool exists = std::any_of(files.begin(), files.end(), [&header](const SourceFile& file) {
      return file.path == header;
    });
    if (!exists) bad.push_back(header + ":1: is listed, and is no file of the tree");
  }
  return bad;
}

std::vector<std::string> CheckPublicHeader(const SourceFile& file, const PublicHeaders& listed) {
  std::vector<std::string> bad;
  if (listed.count(file.path) == 0) return bad;
  static const std::regex named(R"([a-z_/-]+\.h\b)");
  ForEachLine(file, [&](int number, const std::string& line) {
    const std::string included = OwnInclude(line);
    if (!included.empty() && listed.count(included) == 0) {
      bad.push_back(At(file, number, "a public header includes " + included + ", which is none"));
    }
    const size_t comment = line.find("//");
    if (comment == std::string::npos || !EndsWith(file.path, ".h")) return;
    const std::string text = line.substr(comment);
    for (std::sregex_iterator it(text.begin(), text.end(), named), end; it != end; ++it) {
      if (!IsListed(it->str(), listed)) {
        bad.push_back(At(file, number, "a public header names " + it->str() + ", which is none"));
      }
    }
  });
  return bad;
}

std::vector<std::string> CheckForUsers(const SourceFile& file, const PublicHeaders& listed) {
  std::vector<std::string> bad;
  if (!IsForUsers(file.path)) return bad;
  const bool is_program =
      IsBelow(file.path, "examples/") && !IsBelow(file.path, "examples/outside/");
  ForEachLine(file, [&](int number, const std::string& line) {
    const std::string included = OwnInclude(line);
    const bool is_own = is_program && (IsBelow(included, "examples/") || IsBelow(included, "cli/"));
    if (!included.empty() && !is_own && listed.count(included) == 0) {
      bad.push_back(At(file, number, included + " is no public header"));
    }
    if (line.find("internal::") != std::string::npos) {
      bad.push_back(At(file, number, "names a namespace `internal`, which is not for users"));
    }
  });
  return bad;
}

}  // namespace halftone::meta
