// Text of type stubs, as the programs that write them print it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halftone::python {

// Literals of Python; of a number as short as it can be written.
std::string Literal(double value);
std::string Literal(int64_t value);
std::string Literal(bool value);
std::string Literal(const std::string& value);

// A function; `parameters` as they stand in its head, "axis: int = 1".
std::string FunctionStub(const std::string& name, const std::vector<std::string>& parameters,
                         const std::string& result, const std::string& doc);
// A final class; `attributes` are lines of its own before __init__, which `parameters` are of.
std::string ClassStub(const std::string& name, const std::string& base, const std::string& doc,
                      const std::vector<std::string>& attributes,
                      const std::vector<std::string>& parameters);

// The `main` of such a program: prints the stub that is written by hand, which its one argument
// names, and behind it what `print` prints.
int WriteStub(int argc, char** argv, void (*print)());

}  // namespace halftone::python
