// Writes optim.pyi: the stub that is written by hand, which it reads, and the classes of the
// optimizers, from their option structs. Run by the build.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <tuple>

#include "halftone/core/status.h"
#include "halftone/optim/options.h"

namespace halftone::python {
namespace {

// As short as the same number can be written.
std::string Literal(double value) {
  char text[32];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  const std::string literal = text;
  return literal.find_first_of(".e") == std::string::npos ? literal + ".0" : literal;
}
std::string Literal(bool value) { return value ? "True" : "False"; }
std::string Literal(const std::array<double, 2>& pair) {
  return Concat("(", Literal(pair[0]), ", ", Literal(pair[1]), ")");
}

const char* TypeName(double) { return "float"; }
const char* TypeName(bool) { return "bool"; }
const char* TypeName(const std::array<double, 2>&) { return "tuple[float, float]"; }

// The text in lines of a docstring, as long as the tree's lines may be.
std::string Wrapped(const std::string& text) {
  constexpr size_t kWidth = 92;
  std::string lines;
  size_t column = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find(' ', begin);
    if (end == std::string::npos) end = text.size();
    if (column > 0 && column + 1 + end - begin > kWidth) {
      lines += "\n    ";
      column = 0;
    }
    if (column > 0) lines += " ";
    column += (column > 0 ? 1 : 0) + end - begin;
    lines += text.substr(begin, end - begin);
    begin = end + 1;
  }
  return lines;
}

template <typename Options>
void PrintClass(const Options& options) {
  std::cout << "\n@final\nclass " << Options::kTitle << "(Optimizer):\n    \"\"\""
            << Wrapped(Options::kDoc) << "\"\"\"\n\n"
            << "    def __init__(\n        self,\n        params: _Params,\n";
  std::apply(
      [&options](const auto&... field) {
        ((std::cout << "        " << field.name << ": " << TypeName(options.*field.member) << " = "
                    << Literal(options.*field.member) << ",\n"),
         ...);
      },
      OwnFields(options));
  std::cout << "        *,\n"
               "        lr_schedule: LRSchedule = ...,\n"
               "        clip_norm: float = 0.0,\n"
               "        clip_value: float = 0.0,\n"
               "        scaler: str = \"\",\n"
               "        skip: str = \"own\",\n"
               "        skip_nonfinite: bool = False,\n"
               "    ) -> None: ...\n";
}

int Main(const char* by_hand) {
  std::ifstream in(by_hand);
  std::cout << in.rdbuf();
  optim::ForEachOptions([](const auto& options) { PrintClass(options); });
  std::cout.flush();
  return in.good() && std::cout.good() ? 0 : 1;
}

}  // namespace
}  // namespace halftone::python

int main(int argc, char** argv) { return argc == 2 ? halftone::python::Main(argv[1]) : 2; }
