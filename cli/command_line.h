// The start of a command-line program.
#pragma once

#include <vector>

namespace halftone::cli {

// Reads the flags of the program and gives the arguments that are none, the program's name first.
// Ends the process where the flags do not allow to go on: status 0 after --help and --version, 2
// with a message on standard error for an unknown flag or a value that a flag cannot take.
//
// From here on a file that grows over the size limit of the process (ulimit -f) is an error of the
// write, not a signal that ends the program.
std::vector<char*> ParseCommandLine(int argc, char** argv);

}  // namespace halftone::cli
