// NonFiniteNode: where infinities and NaNs of a step began.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "halftone/core/dtype.h"
#include "halftone/passes/amp/range.h"

namespace halftone::runtime {

// The first node, in the order in which the step runs, of which an output of the step, a gradient or
// a new value of a variable is not finite: its operands are finite and its result is not, or it made
// a NaN of infinities that came from outside the step (an infinite mask, say, of which a whole row
// is masked). Infinities that reach none of these, as those of masked scores, are none of it.
struct NonFiniteNode {
  // kInput, kVariable, kConstant: what the step was given is not finite itself, an input, the value
  // of a variable at its start, a constant of the graph.
  enum class Kind : uint8_t { kComputed, kInput, kVariable, kConstant };
  struct Operand {
    std::string value;  // "%h", "%h#1"; of a variable its name
    std::string type;   // "f16[8,4]"
    amp::Range range;   // empty of what is no float
  };

  Kind kind = Kind::kComputed;
  std::string node;      // name in the compiled graph: "matmul_3"; of a variable or input its own
  std::string op;        // "matmul"
  std::string module;    // that made it, "encoder/fc1"; empty outside modules
  std::string location;  // "model.cc:42", the line of build(); empty if unknown
  std::string gradient_of;  // the node whose gradient it computes; empty in the forward graph
  int output = 0;           // which of its outputs
  std::string type;         // of this output
  DType dtype = DType::kF32;
  std::string why;  // its precision, as decided for it, or for the node of which it is the gradient
                    // or the cast; empty without mixed precision
  amp::Range range;  // of this output
  std::vector<Operand> operands;
  // Scale of each grad scaler in the step that was looked at, by the scaler's name.
  std::map<std::string, double> scales;
};

// One line: "%mul_1 (mul, head) f16[4] at model.cc:12: 3 of 4 elements are not finite; ...".
std::string ToString(const NonFiniteNode& node);

}  // namespace halftone::runtime
