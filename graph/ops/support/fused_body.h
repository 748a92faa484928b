// What a `fused` node computes: elementwise ops, each read by the next one alone.
//
//   relu(add(cast(%0) {to=f32}, %1))
//
// %0, %1, ... are the node's inputs. Attributes are written as in the text form, those equal to the
// record's default left out, strings that are words without quotes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/op.h"

namespace halftone::ops {

inline constexpr int kMaxFusedInputs = 12;
inline constexpr int kMaxFusedSteps = 32;

// One op of a body. An operand is the number of an input, or the number of inputs plus that of an
// earlier step.
struct FusedStep {
  const ir::OpRecord* op = nullptr;
  std::vector<int> operands;
  ir::Attributes attrs;  // complete
};

// Why `op` cannot be part of a body; empty: it can. It maps elements of its operands to those of its
// one result, whatever their order in memory, and does nothing else.
std::string WhyNotFusable(const ir::OpRecord& op);

// Which element of an input belongs to element i of the result, both in the order of memory.
struct FusedAccess {
  enum class Kind : uint8_t { kSame, kOne, kRow, kChannels };
  Kind kind = Kind::kSame;
  // kRow: element i % period. kChannels, of a result in blocks of channels: an element for each channel, that of the
  // channel of i; `period` elements of the result have one block of them.
  int64_t period = 0;
  friend bool operator==(const FusedAccess&, const FusedAccess&) = default;
};
// Empty: elements lie in another order than those of the result, or repeat within its rows.
std::optional<FusedAccess> AccessOf(const ir::ValueType& input, const ir::ValueType& result);

class FusedBody {
 public:
  // The last step gives the result; every other one is the operand of exactly one later step.
  FusedBody(int num_inputs, std::vector<FusedStep> steps)
      : num_inputs_(num_inputs), steps_(std::move(steps)) {}
  // Untrusted text. Errors: InvalidArgument, which name what was expected.
  static absl::StatusOr<FusedBody> Parse(const std::string& text, int num_inputs);
  std::string ToString() const;

  int num_inputs() const { return num_inputs_; }
  const std::vector<FusedStep>& steps() const { return steps_; }

  // The type of each step. Errors: those of the steps' inference; InvalidArgument for a step that
  // has another shape than the result, for an input without an AccessOf it, and where rows of two
  // inputs are of different length.
  absl::StatusOr<std::vector<ir::ValueType>> Infer(const std::string& label,
                                                   const std::vector<ir::ValueType>& inputs) const;
  // A node for each step, in order.
  std::vector<ir::Expr> Build(ir::Builder& b, const std::vector<ir::Expr>& inputs) const;

 private:
  int num_inputs_;
  std::vector<FusedStep> steps_;
};

}  // namespace halftone::ops
