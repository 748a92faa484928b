// Writes optim.pyi: the stub that is written by hand, which it reads, and the classes of the
// optimizers, from their option structs. Run by the build.
#include <array>
#include <iostream>
#include <string>
#include <tuple>

#include "halftone/core/status.h"
#include "halftone/optim/options.h"
#include "halftone/python_stub/stubs/stub_text.h"

namespace halftone::python {
namespace {

using Pair = std::array<double, 2>;
using python::Literal;

std::string Literal(const Pair& pair) {
  return Concat("(", Literal(pair[0]), ", ", Literal(pair[1]), ")");
}

const char* TypeName(double) { return "float"; }
const char* TypeName(bool) { return "bool"; }
const char* TypeName(const Pair&) { return "tuple[float, float]"; }

template <typename Options>
void PrintClass(const Options& options) {
  std::vector<std::string> parameters = {"self", "params: _Params"};
  std::apply(
      [&](const auto&... field) {
        (parameters.push_back(Concat(field.name, ": ", TypeName(options.*field.member), " = ",
                                     Literal(options.*field.member))),
         ...);
      },
      OwnFields(options));
  for (const char* of_every_optimizer :
       {"*", "lr_schedule: LRSchedule = ...", "clip_norm: float = 0.0", "clip_value: float = 0.0",
        "scaler: str = \"\"", "skip: str = \"own\"", "skip_nonfinite: bool = False",
        "ema: Optional[Ema] = None", "weights: str = \"declared\""}) {
    parameters.emplace_back(of_every_optimizer);
  }
  std::cout << "\n" << ClassStub(Options::kTitle, "Optimizer", Options::kDoc, {}, parameters);
}

void Print() {
  optim::ForEachOptions([](const auto& options) { PrintClass(options); });
}

}  // namespace
}  // namespace halftone::python

int main(int argc, char** argv) {
  return halftone::python::WriteStub(argc, argv, &halftone::python::Print);
}
