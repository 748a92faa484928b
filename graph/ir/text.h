// The text form of a graph: for people and golden tests.
//
//   graph @classifier(%x: f32[8,3], %y "labels": i64[8]) {
//     variable "fc1.old" {kind="buffer"} : f32[3]
//     %w = variable "fc1.weight" {init="uniform(-0.5,0.5)"} : f32[4,3]
//     %c = constant {value=dense<f32[2]>(1, 2.5)} : f32[2]
//     %z = constant {value=splat<f32[8,4]>(0)} : f32[8,4]
//     %h, %h#1, %h#2 = layer_norm(%x, %g, %b) {eps=1e-06} : f32[8,3], f32[8], f32[8]
//     backward(%loss) {scaler="s"}
//     commit "fc1.weight" = %w_next
//     return %loss, logits=%h
//   }
//
// Attributes equal to the record's default are left out. Numbers print shortest-round-trip; nan,
// inf and -inf are words, and 0x7fc00001 is a NaN by its bits. Outputs after the first are %h#1,
// %h#2; where a node is defined they may be left out, or be given other names for the text that
// follows. A root has no value; `%name =` before it is the name of its node. A `variable` without a
// result declares a variable that nothing reads. `//` starts a comment.
//
// Notes may follow the types, on the same line, each printed only when asked for:
//   @"scope" loc("file":12) pass("name","from") recompute("why") amp(allow,bf16,"reason") keep_f32
//   allow_low
// A node raised to f32 has the dtype it was raised from behind the reason, amp(deny,f32,"reason",f16);
// one about which nothing was decided the reason alone, amp("left alone: ...").
//
// Constants over 1,024 elements may live in files beside the text, named by a hash of their bytes:
//   %c = constant {value=file<f32[2000]>("00c0ffee00c0ffee.bin")} : f32[2000]
#pragma once

#include <string>

#include "halftone/graph/ir/graph.h"

namespace halftone::ir {

struct TextOptions {
  bool scopes = false;  // and the names of roots
  bool locations = false;
  bool provenance = false;  // and why values are made anew
  bool amp = false;         // decisions and requests
  // Whether large constants are only named; WriteConstantFiles writes them.
  bool constant_files = false;
  static TextOptions Lossless() { return {true, true, true, true, false}; }
};

std::string Print(const Graph& graph, const TextOptions& options = {});
// The name of an output: its own, or that of its value, "l" for %l.
std::string OutputName(const Output& output);
// One node, as in Print, without a newline.
std::string Print(const Node& node, const TextOptions& options = {});

// Writes the constants that TextOptions::constant_files leaves out of the text. Files already there
// with the right contents stay. Errors: those of the file system.
absl::Status WriteConstantFiles(const Graph& graph, const std::string& dir);

// Untrusted input: sizes bounded, every error is InvalidArgument "line 3, column 14: matmul: ..." ;
// the result is verified. Types after ':' may be left out where inference gives them (everywhere
// but in the header and at variables); if given they must agree. Files of constants are looked for
// in `constants_dir`; if it is empty they are an error.
absl::StatusOr<std::unique_ptr<Graph>> Parse(const std::string& text,
                                             const std::string& constants_dir = "");

}  // namespace halftone::ir
