// The texts of errors that the sources can give, and whether tests have them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "halftone/tests/meta/tree_rules.h"

namespace halftone::meta {

struct ErrorText {
  std::string path;
  int line = 0;
  std::string text;  // as in the source, escapes included
};

// Of each call of an error constructor, such as InvalidArgument, the longest literal among its
// arguments, without blanks and punctuation at its ends. Literals that follow each other, or are
// parted by a comma only, are one. Calls without a literal of 6 characters are left out: what they
// say is made elsewhere.
std::vector<ErrorText> ErrorTexts(const SourceFile& file);

// Texts of errors in `files` that `tests` does not have. Leaves out tests/, and the kernels
// of kernels/cpu and kernels/cuda, whose refusals are reasons why another one is chosen.
std::vector<ErrorText> Untested(const std::vector<SourceFile>& files, const std::string& tests);

// What the tests below `root`, and the files they compare with, say: all in one text, with literals
// joined as above and without the backslashes of regular expressions before parentheses. Leaves
// tests/meta out, which lists texts that no test has.
std::string TextOfTests(const std::filesystem::path& root);

// The same of one file.
std::string Joined(const std::string& text);

}  // namespace halftone::meta
