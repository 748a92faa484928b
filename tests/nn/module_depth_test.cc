// Modules nested without end are an error, not a stack overflow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "halftone/graph/nn/sequential.h"
#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

constexpr int kMany = 50000;

TEST(ModuleDepth, FromTheOutsideIn) {
  Sequential outer;
  Sequential* inner = &outer;
  for (int i = 0; i < kMany; ++i) inner = &inner->emplace<Sequential>();
  FnGraph graph([&](const Values& in) -> Values { return {outer(in[0])}; });
  graph.add_module("outer", outer);
  EXPECT_THAT(Message(graph.status()),
              ::testing::EndsWith("\"0\": expected at most 500 modules in one another"));
  EXPECT_TRUE(outer.named_parameters().empty());
  // The destructors of the refused ones, nested too, must not overflow the stack either.
}

// Registers a child that it does not own.
struct Parent : Module {
  using Module::register_module;
};

TEST(ModuleDepth, FromTheInsideOut) {
  std::vector<std::unique_ptr<Parent>> modules;
  modules.push_back(std::make_unique<Parent>());
  int refused = 0;
  for (int i = 1; i < kMany; ++i) {
    modules.push_back(std::make_unique<Parent>());
    modules[i]->register_module("m", *modules[i - 1]);
    if (modules[i]->status().ok()) continue;
    ++refused;
    EXPECT_EQ(Message(modules[i]->status()), "\"m\": expected at most 500 modules in one another");
    break;
  }
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(modules.size(), 502u);
}

TEST(ModuleDepth, ACircle) {
  Parent a, b, c;
  a.register_module("b", b);
  b.register_module("c", c);
  c.register_module("a", a);
  EXPECT_EQ(Message(c.status()), "\"a\": a module cannot contain itself");
  EXPECT_TRUE(c.children().empty());
  Parent self;
  self.register_module("self", self);
  EXPECT_EQ(Message(self.status()), "\"self\": a module cannot contain itself");
}

// A module shared by many is no deeper for it.
TEST(ModuleDepth, OneModuleInManyPlaces) {
  Parent shared, parents[1000], top;
  for (Parent& parent : parents) parent.register_module("shared", shared);
  for (int i = 0; i < 1000; ++i) top.register_module("p" + std::to_string(i), parents[i]);
  EXPECT_TRUE(top.status().ok()) << top.status();
  EXPECT_EQ(top.children().size(), 1000u);
}

}  // namespace
}  // namespace halftone::nn
