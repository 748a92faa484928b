// Each invariant is broken once, through what a pass can reach, and Verify names node and rule.
#include "halftone/graph/ir/verify.h"

#include <gtest/gtest.h>

#include "halftone/tests/ir/test_ops.h"

namespace halftone::ir {
namespace {

const char kVerifiedText[] = R"g(graph @g(%x: f32[2,3,4,5], %y: f32[2,3,4,5]) {
  %w = variable "w" : f32[2,3,4,5]
  %c = constant {value=dense<f32[]>(1)} : f32[]
  %a, %a#1 = test_two(%x) : f32[2,3,4,5], f32[2,3,4,5]
  %m = test_mix(%a, %y) {k=1} : f32[2,3,4,5]
  test_root(%m)
  commit "w" = %m
  return %m, aux=%a#1
}
)g";

struct Broken {
  const char* what;
  void (*change)(Graph&);
  const char* message;
};

Node& N(Graph& graph, const char* name) {
  Node* node = graph.FindNode(name);
  EXPECT_NE(node, nullptr) << name;
  return *node;
}

const Broken kBroken[] = {
    {"order", [](Graph& g) { N(g, "a").set_input(0, N(g, "m").output()); },
     "test_two(%a): input 0 is not an output of an earlier node of the graph"},
    {"self", [](Graph& g) { N(g, "a").set_input(0, N(g, "a").output()); },
     "test_two(%a): input 0 is not an output of an earlier node of the graph"},
    {"poison input", [](Graph& g) { N(g, "m").set_input(1, Value{}); },
     "test_mix(%m): input 1 is not a value"},
    {"value of another graph",
     [](Graph& g) {
       static Graph* const other = ParseOrDie(kVerifiedText).release();
       N(g, "m").set_input(1, N(*other, "y").output());
     },
     "test_mix(%m): input 1 is not an output of an earlier node of the graph"},
    {"output index", [](Graph& g) { N(g, "m").set_input(0, N(g, "a").output(2)); },
     "test_mix(%m): input 0 is output 2 of test_two(%a), which has 2"},
    {"input count", [](Graph& g) { N(g, "a").add_input(N(g, "x").output()); },
     "test_two(%a): got 2 inputs; expected 1 (x)"},
    {"input dtype",
     [](Graph& g) {
       N(g, "x").mutable_attrs().Set("dtype", DType::kBF16);
       N(g, "x").mutable_output_types()[0].dtype = DType::kBF16;
       for (ValueType& t : N(g, "a").mutable_output_types()) {
         t.dtype = DType::kBF16;
       }
     },
     "test_mix(%m): input 0 (a) is bf16[2,3,4,5]; expected f64 f32"},
    {"output dtype", [](Graph& g) { N(g, "m").mutable_output_types()[0].dtype = DType::kF64; },
     "test_mix(%m): output 0 is f64[2,3,4,5]; inference gives f32[2,3,4,5]"},
    {"output shape", [](Graph& g) { N(g, "m").mutable_output_types()[0].shape = Shape{2}; },
     "test_mix(%m): output 0 is f32[2]; inference gives f32[2,3,4,5]"},
    {"output count", [](Graph& g) { N(g, "a").mutable_output_types().pop_back(); },
     "test_two(%a): has 1 outputs; inference gives 2"},
    {"attribute absent", [](Graph& g) { N(g, "m").mutable_attrs().Erase("k"); },
     "test_mix(%m): attribute k is absent; expected int"},
    {"attribute with a default absent", [](Graph& g) { N(g, "w").mutable_attrs().Erase("kind"); },
     "variable(%w): attribute kind is absent or has another type"},
    {"attribute unknown", [](Graph& g) { N(g, "m").mutable_attrs().Set("q", true); },
     "test_mix(%m): has no attribute \"q\"; expected k"},
    {"attribute type", [](Graph& g) { N(g, "m").mutable_attrs().Set("k", 1.5); },
     "test_mix(%m): attribute k is float 1.5; expected int"},
    {"undefined tensor",
     [](Graph& g) {
       N(g, "c").mutable_attrs().Set("value", AttrValue(std::in_place_type<Tensor>));
     },
     "constant(%c): attribute value is tensor undefined; expected tensor"},
    {"input name used twice",
     [](Graph& g) { N(g, "y").mutable_attrs().Set("name", std::string("x")); },
     "input(%y): a second input called \"x\""},
    {"variable undeclared", [](Graph& g) { g.RemoveVariables({"w"}); },
     "variable(%w): variable \"w\" is not declared"},
    {"variable disagrees",
     [](Graph& g) { N(g, "w").mutable_attrs().Set("init", std::string("normal(0,1)")); },
     "variable(%w): variable \"w\" is declared as f32[2,3,4,5] parameter constant(0); "
     "the node says f32[2,3,4,5] parameter normal(0,1)"},
    {"variable read twice",
     [](Graph& g) {
       const Node& w = N(g, "w");
       g.AddNode(&w.op(), {}, w.attrs(), {w.output_type()}, "w", "");
     },
     "variable(%w_1): a second node of variable \"w\""},
    {"commit undeclared",
     [](Graph& g) { g.commits()[0]->mutable_attrs().Set("variable", std::string("v")); },
     "commit(%commit): commit of \"v\", which is not declared"},
    {"commit twice",
     [](Graph& g) {
       const Node& commit = *g.commits()[0];
       g.AddNode(&commit.op(), commit.inputs(), commit.attrs(), {}, "commit", "");
     },
     "commit(%commit_1): a second commit of \"w\""},
    {"commit of another type", [](Graph& g) { g.commits()[0]->set_input(0, N(g, "c").output()); },
     "commit(%commit): commits %c, f32[], to \"w\", which is f32[2,3,4,5]"},
    {"output not a value", [](Graph& g) { g.outputs()[1].value = Value{}; },
     "graph @g: output 1 is not an output of one of its nodes"},
    {"output index of a graph output", [](Graph& g) { g.outputs()[1].value.index = 2; },
     "graph @g: output 1 is not an output of one of its nodes"},
    {"output name twice", [](Graph& g) { g.outputs()[0].name = "aux"; },
     "graph @g: a second output called \"aux\""},
    {"amp request", [](Graph& g) { N(g, "m").amp_request = 2; },
     "test_mix(%m): amp_request is 2; expected -1, 0 or 1"},
    {"layout of a source",
     [](Graph& g) { N(g, "x").mutable_output_types()[0].layout = Layout::kChannelsLast; },
     "input(%x): output 0 is f32[2,3,4,5]{nhwc}; expected plain layout"},
    {"layout of rank 0",
     [](Graph& g) { N(g, "c").mutable_output_types()[0].layout = Layout::kChannelsLast; },
     "constant(%c): output 0 is f32[]{nhwc}; expected plain layout"},
    {"layouts of operands differ",
     [](Graph& g) {
       N(g, "a").mutable_output_types()[1].layout = Layout::kChannelsLast;
       N(g, "m").set_input(0, N(g, "a").output(1));
     },
     "test_mix(%m): input 0 is f32[2,3,4,5]{nhwc}, the output f32[2,3,4,5]; expected one layout"},
};

TEST(Verify, SeesEachBrokenInvariant) {
  for (const Broken& broken : kBroken) {
    const auto graph = ParseOrDie(kVerifiedText);
    ASSERT_TRUE(Verify(*graph).ok()) << Verify(*graph);
    broken.change(*graph);
    const absl::Status status = Verify(*graph);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << broken.what << ": " << status;
    EXPECT_EQ(Message(status), broken.message) << broken.what;
  }
}

TEST(Verify, CommitOfAChannelsLastValueIsRefused) {
  // Masters are plain; the layout pass puts a relayout before the commit.
  const auto graph = ParseOrDie(R"(graph @g(%x: f32[2,3,4,5]) {
  variable "v" : f32[2,3,4,5]
  %a = relayout(%x) {to="nhwc"}
  commit "v" = %x
})");
  ASSERT_TRUE(Verify(*graph).ok());
  graph->commits()[0]->set_input(0, graph->FindNode("a")->output());
  EXPECT_EQ(Message(Verify(*graph)),
            "commit(%commit): input 0 is f32[2,3,4,5]{nhwc}; expected plain layout");
}

std::string ParseMessage(const std::string& statements) {
  const auto graph = Parse(
      "graph @g(%x: f32[16,16,3,3], %z: f32[5,1,1,1,1], %w: f32[16,16,3,3]) {\n"
      "  %b = relayout(%x) {to=\"nchw16c\"} : f32[16,16,3,3]{nchw16c}\n" +
      statements + "}");
  return graph.ok() ? "" : Message(graph.status());
}

TEST(Verify, ChannelsInBlocksAreNotBroadcast) {
  EXPECT_EQ(ParseMessage("  %y = relu(%b)\n  return %y\n"), "");
  for (const char* text :
       {"  %y = add(%b, %z)\n  return %y\n", "  %y = add(%z, %b)\n  return %y\n"}) {
    EXPECT_NE(ParseMessage(text).find("expected one layout"), std::string::npos)
        << ParseMessage(text);
  }
}

// A kernel reads operands that an op does not name as they always lie.
TEST(Verify, OnlyNamedPortsHaveALayout) {
  EXPECT_EQ(ParseMessage("  %y = conv2d(%b, %w)\n  return %y\n"), "");
  const std::string message = ParseMessage("  %y = conv2d(%x, %b)\n  return %y\n");
  EXPECT_NE(message.find("input 1 is f32[16,16,3,3]{nchw16c}; expected plain layout"),
            std::string::npos)
      << message;
}

TEST(Verify, AcceptsOneLayoutThrough) {
  const auto graph = ParseOrDie(R"(graph @g(%x: f32[2,3,4,5]) {
  %a = relayout(%x) {to="nhwc"}
  %b = test_mix(%a, %a) {k=1}
  return %b
})");
  EXPECT_EQ(graph->FindNode("b")->output_type().layout, Layout::kChannelsLast);
}

}  // namespace
}  // namespace halftone::ir
