// How a saved state is loaded where it does not quite fit, and what came of it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/tensor.h"

namespace halftone::runtime {

// Name -> value. Two names of one variable share one tensor.
using StateDict = std::map<std::string, Tensor>;

struct LoadOptions {
  // Off: what fits is taken, the rest is reported.
  bool strict = true;
  // Floats of another precision are converted, with one rounding: a file of f16 weights into f32
  // parameters, as PyTorch's load_state_dict does. Off: they are mismatched.
  bool convert = false;
  // Names in the state and what they are called here, of parameters and buffers; the state that an
  // optimizer keeps for a parameter follows it. A '*' stands for any text, which is put where the
  // new name has its '*': {{"module.*", "*"}, {"encoder.*", "backbone.body.*"}}. The first pattern
  // that fits a name is used. An empty new name leaves the entry out.
  std::vector<std::pair<std::string, std::string>> rename = {};
  // The same as a function, which gets each name after `rename`. It must not throw.
  std::function<std::string(const std::string&)> rename_with = nullptr;
};

// A value that is not taken, since it has another type.
struct LoadMismatch {
  std::string name;
  std::string got;       // in the state: "f32[5,8]", or "an undefined tensor"
  std::string expected;  // here: "f32[2,8]"
};

struct LoadReport {
  std::vector<std::string> missing;      // known here, absent from the state; they keep their value
  std::vector<std::string> unexpected;   // in the state, unknown here
  std::vector<LoadMismatch> mismatched;  // they keep their value, state of optimizers starts anew
  std::vector<std::string> unused_renames;  // patterns of LoadOptions::rename that fit no name

  // "mismatched: ...; missing: ...; unexpected: ..."; empty if there is nothing to say.
  std::string ToString() const;
};

}  // namespace halftone::runtime
