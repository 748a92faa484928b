// Rules of the line around the API: cmake/public_headers.txt lists what users may include. Each
// function returns one line per violation, as those of tree_rules.h.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "halftone/tests/meta/tree_rules.h"

namespace halftone::meta {

// The entries of the list, of which `text` is the content. Empty lines and those that begin with
// '#' are none.
std::vector<std::string> ListedHeaders(const std::string& text);

using PublicHeaders = std::set<std::string>;

// Every entry is a file of the tree, and stands once.
std::vector<std::string> CheckList(const std::vector<std::string>& listed,
                                   const std::vector<SourceFile>& files);

// A listed file includes no file of Halftone that is not listed, and its comments send the reader
// to none.
std::vector<std::string> CheckPublicHeader(const SourceFile& file, const PublicHeaders& listed);

// What users copy or read (the top README, docs/, examples/, the projects of tests/install/)
// includes listed headers only, and names no namespace `internal`. The programs of examples/ have
// headers of their own there, and begin and end as all programs of the tree do (cli/).
std::vector<std::string> CheckForUsers(const SourceFile& file, const PublicHeaders& listed);

}  // namespace halftone::meta
