// reduce_scatter_start reduce_scatter_wait all_gather_start all_gather_wait, of one rank: tests/distributed has
// several.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

using PieceShapes = std::vector<std::string>;
using Positions = std::vector<int64_t>;

ir::Attributes ShardLayoutAttrs(const PieceShapes& shapes) {
  return {{"ranks", int64_t{1}},
          {"rank", int64_t{0}},
          {"shapes", shapes},
          {"owners", Positions(shapes.size(), 0)}};
}

// Starts take their operands apart, waits the buffer: whole elements and 1 more, rounded up to 32.
void AddShardScatter(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, std::vector<OpInput> inputs,
                       const PieceShapes& shapes, int64_t buffer) {
    ir::Attributes start = ShardLayoutAttrs(shapes);
    start.Set("reduction", std::string("sum"));
    cases.push_back(NoGradient(Case("reduce_scatter_start", variant, std::move(inputs), start)));
    cases.push_back(NoGradient(
        Case("reduce_scatter_wait", variant, {Reals({buffer})}, ShardLayoutAttrs(shapes))));
  };
  add("one", {Reals({3, 11})}, {"[3,11]"}, 64);
  add("several", {Reals({33}), Reals({2, 3, 5}), Reals({})}, {"[33]", "[2,3,5]", "[]"}, 96);
  add("empty", {Reals({0, 5}), Reals({2})}, {"[0,5]", "[2]"}, 32);
}

void AddShardGather(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, std::vector<OpInput> inputs,
                       const PieceShapes& shapes, int64_t buffer, const Positions& pieces) {
    cases.push_back(
        NoGradient(Case("all_gather_start", variant, std::move(inputs), ShardLayoutAttrs(shapes))));
    ir::Attributes wait = ShardLayoutAttrs(shapes);
    wait.Set("pieces", pieces);
    cases.push_back(NoGradient(Case("all_gather_wait", variant, {Reals({buffer})}, wait)));
  };
  add("one", {Reals({3, 11})}, {"[3,11]"}, 64, {0});
  add("several", {Reals({33}), Reals({2, 3, 5}), Reals({})}, {"[33]", "[2,3,5]", "[]"}, 96, {2, 0});
}

}  // namespace

void AddCases_shards(std::vector<OpCase>& cases) {
  AddShardScatter(cases);
  AddShardGather(cases);
}

}  // namespace halftone::testing
