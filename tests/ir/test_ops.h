// Ops that exist only in these tests, so that the tests of the representation do not depend on what
// the real records say.
//
//   test_pass(x)            y of x's type; elementwise, follows layouts
//   test_two(x)             two outputs of x's type
//   test_attrs(){...}       one attribute of every type, all with defaults; y : f32[]
//   test_mix(a, b, (c))     a and b f32 or f64; c optional, i64; y of a's type; attribute k
//                           required
//   test_many(x...)         variadic; one output per input
//   test_root(x...) {tag}   a marker without outputs
#pragma once

#include <memory>
#include <string>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/text.h"

namespace halftone::ir {

// Once per process; cheap afterwards.
void RegisterTestOps();

// Parses, or fails the test and gives an empty graph.
std::unique_ptr<Graph> ParseOrDie(const std::string& text);

}  // namespace halftone::ir
