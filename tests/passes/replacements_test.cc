#include "halftone/passes/rewrite/replacements.h"

#include <gtest/gtest.h>

#include "halftone/graph/ir/text.h"

namespace halftone::passes {
namespace {

std::unique_ptr<ir::Graph> Chain() {
  auto graph = ir::Parse(R"(graph @g(%x: f32[2], %y: f32[2]) {
    %a = relu(%x)
    %b = relu(%a)
    %c = add(%b, %a)
    return %c, %b
  })");
  HT_CHECK(graph.ok(), "the test's graph parses");
  return *std::move(graph);
}

ir::Value V(const ir::Graph& graph, const char* name) { return graph.FindNode(name)->output(); }

TEST(Replacements, FollowChainsAndReachOutputs) {
  const auto graph = Chain();
  Replacements replacements;
  replacements.Replace(V(*graph, "b"), V(*graph, "a"));
  replacements.Replace(V(*graph, "a"), V(*graph, "y"));
  EXPECT_EQ(replacements.Current(V(*graph, "b")), V(*graph, "y"));
  EXPECT_EQ(replacements.Current(V(*graph, "x")), V(*graph, "x"));
  EXPECT_EQ(graph->FindNode("c")->input(0), V(*graph, "b")) << "nothing is updated yet";
  replacements.Finish(*graph);
  EXPECT_EQ(graph->FindNode("c")->input(0), V(*graph, "y"));
  EXPECT_EQ(graph->FindNode("c")->input(1), V(*graph, "y"));
  EXPECT_EQ(graph->outputs()[0].value, V(*graph, "c"));
  EXPECT_EQ(graph->outputs()[1].value, V(*graph, "y"));
}

TEST(Replacements, UpdateOneNode) {
  const auto graph = Chain();
  Replacements replacements;
  replacements.Replace(V(*graph, "a"), V(*graph, "x"));
  replacements.Update(*graph->FindNode("c"));
  EXPECT_EQ(graph->FindNode("c")->input(1), V(*graph, "x"));
  EXPECT_EQ(graph->FindNode("b")->input(0), V(*graph, "a"));
}

TEST(ReplacementsDeathTest, RefuseAValueTwice) {
  const auto graph = Chain();
  Replacements replacements;
  replacements.Replace(V(*graph, "b"), V(*graph, "a"));
  EXPECT_DEATH(replacements.Replace(V(*graph, "b"), V(*graph, "x")), "replaced twice");
  EXPECT_DEATH(replacements.Replace(V(*graph, "a"), V(*graph, "b")), "replaced by itself");
}

}  // namespace
}  // namespace halftone::passes
