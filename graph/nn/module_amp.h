// ModuleAmp: what a module is told about mixed precision, in one piece.
#pragma once

#include <vector>

#include "halftone/graph/nn/value.h"

namespace halftone::nn {

class Module;

// See Module::set_amp. Named after what MMCV's auto_fp16 and force_fp32 do for a function.
struct ModuleAmp {
  bool fp32 = false;  // the module's ops stay f32, see Module::keep_fp32
  bool low = false;   // they run in 16 bit, see Module::allow_low; not both
  // Operands of a call, by position, that are f32 for the module, and so is what they are computed
  // with up to the next matrix product; coordinates, for example.
  std::vector<int> fp32_inputs = {};
  // Whether the results of a call are f32, and what is computed with them up to the next matrix
  // product.
  bool fp32_outputs = false;

  friend bool operator==(const ModuleAmp&, const ModuleAmp&) = default;
};

namespace internal {

// The operands of a call of `module`, and its results, each cast to f32 where its ModuleAmp says so
// and it is f32 or 16 bit. Errors (of the trace): a position that the call has no value for.
Values AmpOperands(const Module& module, const Values& in, Loc loc);
Values AmpResults(const Module& module, const Values& out, Loc loc);

}  // namespace internal
}  // namespace halftone::nn
