// Inference of one op, for tests of shapes and messages.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "halftone/graph/ir/builder.h"

namespace halftone::testing {

// "f32[2,3] i64[2]": types as texts, separated by blanks.
inline std::vector<ir::ValueType> TypesOf(const std::string& text) {
  std::vector<ir::ValueType> types;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    const size_t open = word.find('[');
    std::vector<int64_t> dims;
    std::istringstream extents(word.substr(open + 1, word.size() - open - 2));
    for (std::string d; std::getline(extents, d, ',');) dims.push_back(std::stoll(d));
    types.push_back({*ParseDType(word.substr(0, open)), Shape(dims)});
  }
  return types;
}

// The types that `op` gives for inputs of `types`, written like them; or the error's message.
inline std::string Infer(const std::string& op, const std::string& types,
                         ir::Attributes attrs = {}) {
  ir::Graph graph;
  ir::Builder b(&graph);
  std::vector<ir::Expr> inputs;
  for (const ir::ValueType& type : TypesOf(types)) inputs.push_back(b.Input("x", type));
  const std::vector<ir::Expr> outputs = b.Make(op, inputs, std::move(attrs));
  if (!b.status().ok()) {
    EXPECT_EQ(b.status().code(), absl::StatusCode::kInvalidArgument);
    return Message(b.status());
  }
  std::string text;
  for (const ir::Expr& output : outputs) {
    text += (text.empty() ? "" : " ") + output.type().ToString();
  }
  return text;
}

}  // namespace halftone::testing
