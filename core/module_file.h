// Where the modules of the library lie: shared objects that a program opens when it first needs what
// they link (CUDA, MPI), so that it builds, starts and runs without.
#pragma once

#include <string>

namespace halftone {

// The path of `library` ("libhalftone_cuda.so") where a build and an installation have it, seen from
// the program or the shared library that has this code; else the bare name, for which the loader
// looks on their run path (an installed Halftone puts the folder of its archives there), then where
// the system has libraries.
std::string FindModule(const std::string& library);

}  // namespace halftone
