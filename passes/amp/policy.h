// amp::Policy: what the user wants mixed precision to do differently, for a whole graph.
//
// An entry is an op type ("softmax"), an op type under a condition on an attribute
// ("conv2d[groups=64]"), or a pattern over node paths ("head/*", scope and name joined by '/'; `*`
// matches any run of characters, '/' included, `?` one).
//
// Precedence, strongest first:
//   1. a path pattern
//   2. the node's own request (nn::amp_black(value), module.keep_fp32(), module.allow_low(), a scope
//      in build())
//   3. an op type with a condition
//   4. an op type
//   5. the op's own trait: its refinement in context, then its class, as far as the level goes by it
// Within a level the longer entry wins, then the more careful class: deny, clear, infer, allow.
// Whatever the policy says, a node stays f32 where the device has no 16-bit kernel for it. A
// pattern that matches no node is a note: another mode of the graph may need it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::amp {

// What becomes of nodes about which neither an entry nor a request says anything.
enum class Level : uint8_t {
  kBalanced,      // as their operators say
  kConservative,  // infer is deny: 16 bit for what is allowed, and for what only moves its values
  kOnlyMatmul,    // infer and clear are deny: 16 bit for what is allowed alone
  // Everything is allowed, but the loss. For measurements: digits and range are lost.
  kForce,
};
// Whether mixed precision may be asked for by this dtype: f16, bf16 or kF8.
inline bool IsPolicyDType(DType dtype) { return IsLow(dtype) || dtype == DType::kF8; }
// By name; "f8" is kF8.
std::optional<DType> ParsePolicyDType(const std::string& name);
inline constexpr char kPolicyDTypes[] = "f16, bf16 or f8";

const char* Name(Level level);  // "balanced", ...
std::optional<Level> ParseLevel(const std::string& name);

// The lists of MXNet's amp.init and amp.convert_model, with names of our operators.
struct OpLists {
  std::vector<std::string> target_dtype_ops = {}, fp32_ops = {};
  // f32 where the attribute has one of the values: {"leaky_relu", "negative_slope", {"0.25"}}.
  struct Conditional {
    std::string op, attribute;
    std::vector<std::string> values;
  };
  std::vector<Conditional> conditional_fp32_ops = {};
  std::vector<std::string> excluded_names = {};  // paths of nodes, or patterns: f32
};

struct Policy {
  // f16 or bf16; absent: what the device prefers. kF8: bf16, and matrix products of a training step
  // on operands scaled to 8 bits.
  std::optional<DType> dtype = {};
  std::vector<std::string> allow = {}, infer = {}, clear = {}, deny = {};
  bool low_outputs = false;  // graph outputs keep 16 bit instead of the type they had before
  // Drop 16-bit islands whose casts move more bytes than they save; not nodes that an entry or a
  // request names.
  bool trim = true;
  Level level = Level::kBalanced;

  // Errors: InvalidArgument for an op that does not exist or has no such attribute, and for one that
  // stands in two lists.
  static absl::StatusOr<Policy> FromLists(const OpLists& lists, std::optional<DType> dtype = {});

  // The 16-bit type of the nodes that are lowered. Requires: dtype is set.
  DType low() const { return IsF8(*dtype) ? DType::kBF16 : *dtype; }

  // The attributes of the `amp` marker. Requires: dtype is set.
  ir::Attributes ToMarker() const;
  static Policy FromMarker(const ir::Node& marker);

  // The file form: AmpPolicyProto (proto/amp_policy.proto) as protobuf's text. `#` starts a comment.
  //   version: 1
  //   dtype: "bf16"
  //   level: CONSERVATIVE
  //   allow: "exp"
  //   deny: ["head/*", "conv2d[groups=1]"]
  //   low_outputs: true
  // One entry a line may also be written as two words: `deny head/*`.
  std::string ToString() const;
  // Errors: InvalidArgument "line 3: ...": what is no policy, an unknown field, a condition on an op
  // or attribute that does not exist, one entry in two lists.
  static absl::StatusOr<Policy> Parse(const std::string& text);
  // Errors: NotFound, what is no regular file, or what Parse says; all with the path in front.
  static absl::StatusOr<Policy> ReadFile(const std::string& path);
  // Errors: those of the system, with the path.
  absl::Status WriteFile(const std::string& path) const;

  friend bool operator==(const Policy&, const Policy&) = default;
};

}  // namespace halftone::amp
