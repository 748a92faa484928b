// What a fuzz target gives: libFuzzer (preset fuzz) or replay_main.cc calls it. Source:
// https://llvm.org/docs/LibFuzzer.html, "Fuzz Target".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// Reads `size` bytes as a file from outside. Ends the program where the reader breaks a promise;
// refusing the bytes is no such thing.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace halftone::testing {

// Inputs that the reader took so far: a corpus of which it takes none would check nothing.
extern int accepted;

// A file of this process with the given bytes, for readers that take a path. The same path every
// time, in a folder that goes with the process.
std::string FuzzFile(const std::string& bytes);

// Ends the program, which is what a fuzzer counts as a find, unless `holds`.
void Require(bool holds, const std::string& what);

inline std::string Bytes(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace halftone::testing
