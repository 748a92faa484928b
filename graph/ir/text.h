// The text form of a graph: for people and golden tests.
//
//   graph @classifier(%x: f32[128,256], %y: i64[128]) {
//     %w = variable "fc1.weight" {init="uniform(-0.0625,0.0625)", kind="parameter", trainable=true}
//     : f32[128,256] %c = constant {value=dense<f32[2]>(1, 2.5)} : f32[2] %h, %m, %r =
//     layer_norm(%x, %g, %b) {eps=1e-05} : f32[128,256], f32[128], f32[128] commit "fc1.weight" =
//     %w_next return %loss, logits=%h
//   }
//
// Attributes equal to the record's default are left out. Doubles print shortest-round-trip; nan,
// inf and -inf are words. After the types, optionally: @"scope" loc("file":line)
// pass("name","from") amp(...), each printed only when asked for; `//` starts a comment. Constants
// over 1,024 elements live in a file beside the text (TextOptions::constants_dir), named by a hash
// of their bytes.
#pragma once

#include <string>

#include "halftone/graph/ir/graph.h"

namespace halftone::ir {

struct TextOptions {
  bool scopes = false;
  bool locations = false;
  bool provenance = false;
  bool amp = false;           // decisions, parseable
  std::string constants_dir;  // empty: every constant is printed in full
  static TextOptions Lossless() { return {true, true, true, true, ""}; }
};

std::string Print(const Graph& graph, const TextOptions& options = {});
// One node, as in Print, without a newline.
std::string Print(const Node& node, const TextOptions& options = {});

// Untrusted input: sizes bounded, every error is InvalidArgument "line 3, column 14: matmul: ..." ;
// the result is verified. Types after ':' may be left out where inference gives them (always for
// ops with a record); if given they must agree.
absl::StatusOr<std::unique_ptr<Graph>> Parse(const std::string& text,
                                             const std::string& constants_dir = "");

}  // namespace halftone::ir
