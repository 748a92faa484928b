// The start of a command-line program.
#pragma once

#include <string>
#include <vector>

namespace halftone::cli {

// Notes that parsing has set the list `flag`. The flags library keeps the last value of a flag that
// is given twice and drops the others without a word, so ParseCommandLine refuses it for each list,
// which is declared as
//   ABSL_FLAG(std::vector<std::string>, feed, {}, "...").OnUpdate([] { cli::NoteList("feed"); });
void NoteList(const std::string& flag);

// Reads the flags of the program, with '-' or '_' in their names, and gives the arguments that are none, the program's name first.
// Ends the process where the flags do not allow to go on: status 0 after --help and --version, 2
// with a message on standard error for an unknown flag, a value that a flag cannot take or a list
// that is given twice.
//
// From here on a file that grows over the size limit of the process (ulimit -f) is an error of the
// write, not a signal that ends the program.
std::vector<char*> ParseCommandLine(int argc, char** argv);

}  // namespace halftone::cli
