// amp::Policy: what the user wants mixed precision to do differently, for a whole graph.
//
// An entry is an op type ("softmax"), an op type under a condition on an attribute
// ("conv2d[groups=64]"), or a pattern over node paths ("head/*", scope and name joined by '/'; `*`
// matches any run of characters, '/' included, `?` one).
//
// Precedence, strongest first:
//   1. a path pattern
//   2. the node's own request (module.keep_fp32(), module.allow_low(), a scope in build())
//   3. an op type with a condition
//   4. an op type
//   5. the op's own trait: its refinement in context, then its class
// Within a level the longer entry wins, then the more careful class: deny, clear, infer, allow.
// Whatever the policy says, a node stays f32 where the device has no 16-bit kernel for it. A
// pattern that matches no node is a note: another mode of the graph may need it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::amp {

struct Policy {
  std::optional<DType> dtype = {};  // f16 or bf16; absent: what the device prefers
  std::vector<std::string> allow = {}, infer = {}, clear = {}, deny = {};
  bool low_outputs = false;  // graph outputs keep 16 bit instead of the type they had before
  // Drop 16-bit islands whose casts move more bytes than they save; not nodes that an entry or a
  // request names.
  bool trim = true;

  // The attributes of the `amp` marker. Requires: dtype is set.
  ir::Attributes ToMarker() const;
  static Policy FromMarker(const ir::Node& marker);

  // The file form, one entry a line, `#` starts a comment:
  //   dtype bf16
  //   deny head/*
  //   allow exp
  //   low_outputs true
  std::string ToString() const;
  // Errors: InvalidArgument "line 3: ...".
  static absl::StatusOr<Policy> Parse(const std::string& text);
  // Errors: NotFound, or what Parse says with the path in front.
  static absl::StatusOr<Policy> ReadFile(const std::string& path);

  friend bool operator==(const Policy&, const Policy&) = default;
};

}  // namespace halftone::amp
