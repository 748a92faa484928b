// Storage: names, order, copies, uses, removal, hash.
#include "halftone/graph/ir/graph.h"

#include <gtest/gtest.h>

#include "halftone/graph/ir/verify.h"
#include "halftone/tests/ir/test_ops.h"

namespace halftone::ir {
namespace {

const char kText[] = R"(graph @g(%x: f32[2]) {
  %w = variable "w" : f32[2]
  %a = test_pass(%x) : f32[2]
  %b = test_pass(%a) : f32[2]
  %c = test_mix(%b, %w) {k=1} : f32[2]
  commit "w" = %c
  return %c
}
)";

std::vector<std::string> Names(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph.nodes()) names.push_back(node->name());
  return names;
}

Node* Append(Graph& graph, const std::string& hint, std::vector<Value> inputs = {}) {
  RegisterTestOps();
  return graph.AddNode(OpRegistry::Global().Find("test_many"), std::move(inputs), {},
                       {{DType::kF32, Shape{2}}}, hint, "");
}

TEST(GraphNames, HintsAreMadeUnique) {
  Graph graph;
  EXPECT_EQ(Append(graph, "relu")->name(), "relu");
  EXPECT_EQ(Append(graph, "relu")->name(), "relu_1");
  EXPECT_EQ(Append(graph, "relu_2")->name(), "relu_2");
  EXPECT_EQ(Append(graph, "relu")->name(), "relu_3");
  EXPECT_EQ(Append(graph, "relu_2")->name(), "relu_2_1");
  EXPECT_EQ(graph.FindNode("relu_3")->name(), "relu_3");
  EXPECT_EQ(graph.FindNode("relu_4"), nullptr);
}

TEST(GraphNames, OtherCharactersAreReplaced) {
  Graph graph;
  EXPECT_EQ(Append(graph, "")->name(), "v");
  EXPECT_EQ(Append(graph, "a/b c%")->name(), "a_b_c_");
  EXPECT_EQ(Append(graph, "a-b.c_9")->name(), "a-b.c_9");
  const Node* node = Append(graph, std::string(1000, 'x'));
  EXPECT_TRUE(IsValidName(node->name())) << node->name().size();
  EXPECT_TRUE(IsValidName(Append(graph, std::string(1000, 'x'))->name()));
  const std::string longest(256, 'y');
  EXPECT_EQ(Append(graph, longest)->name(), longest);
  EXPECT_TRUE(IsValidName(Append(graph, longest)->name()));
  EXPECT_FALSE(IsValidName(std::string(257, 'y')));
}

TEST(GraphClone, IsTheSameAndApart) {
  const auto graph = ParseOrDie(kText);
  graph->FindNode("a")->location = {"f.cc", 3};
  const auto copy = graph->Clone();
  EXPECT_EQ(Print(*copy, TextOptions::Lossless()), Print(*graph, TextOptions::Lossless()));
  EXPECT_EQ(copy->Hash(), graph->Hash());
  EXPECT_TRUE(Verify(*copy).ok()) << Verify(*copy);
  EXPECT_EQ(copy->FindNode("b")->id(), graph->FindNode("b")->id());
  EXPECT_NE(copy->FindNode("b"), graph->FindNode("b"));
  // New nodes get the same names and ids in both.
  const Node* made = Append(*copy, "a");
  EXPECT_EQ(made->id(), Append(*graph, "a")->id());
  EXPECT_EQ(made->name(), "a_1");
  copy->FindNode("c")->mutable_attrs().Set("k", int64_t{2});
  EXPECT_EQ(graph->FindNode("c")->attrs().GetInt("k"), 1);
}

TEST(GraphClone, CopiesAGraphThatIsOutOfOrder) {
  Graph graph;
  Node* a = Append(graph, "a");
  Node* b = Append(graph, "b");
  a->add_input(b->output());
  const auto copy = graph.Clone();
  EXPECT_EQ(copy->FindNode("a")->input(0).node, copy->FindNode("b"));
}

TEST(GraphSort, KeepsAnOrderThatIsRight) {
  const auto graph = ParseOrDie(kText);
  const auto names = Names(*graph);
  ASSERT_TRUE(graph->Sort().ok());
  EXPECT_EQ(Names(*graph), names);
}

TEST(GraphSort, MovesAnAppendedNodeBeforeItsFirstUser) {
  const auto graph = ParseOrDie(kText);
  Node* late = Append(*graph, "late", {graph->FindNode("x")->output()});
  Node* later = Append(*graph, "later", {late->output()});
  Append(*graph, "unused", {graph->FindNode("x")->output()});
  graph->FindNode("b")->set_input(0, later->output());
  ASSERT_TRUE(graph->Sort().ok());
  EXPECT_EQ(Names(*graph), (std::vector<std::string>{"x", "w", "a", "late", "later", "b", "c",
                                                     "commit", "unused"}));
  EXPECT_TRUE(Verify(*graph).ok()) << Verify(*graph);
}

TEST(GraphSort, ReportsACycle) {
  const auto graph = ParseOrDie(kText);
  graph->FindNode("a")->set_input(0, graph->FindNode("c")->output());
  const absl::Status status = graph->Sort();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Message(status), "test_pass(%b): the graph has a cycle through %a");
}

TEST(GraphSort, ReportsAnInputFromElsewhere) {
  const auto graph = ParseOrDie(kText), other = ParseOrDie(kText);
  graph->FindNode("b")->set_input(0, other->FindNode("a")->output());
  EXPECT_EQ(Message(graph->Sort()), "test_pass(%b): an input is not a node of this graph");
}

TEST(GraphSort, TakesAChainAsLongAsTheGraph) {
  // Every node is needed by the one before it: the worst case for a recursive walk.
  Graph graph;
  Node* previous = nullptr;
  for (int i = 0; i < 200000; ++i) {
    Node* node = Append(graph, "n");
    if (previous != nullptr) previous->add_input(node->output());
    previous = node;
  }
  ASSERT_TRUE(graph.Sort().ok());
  EXPECT_EQ(graph.nodes().back()->name(), "n");
}

TEST(GraphUses, ReplaceUsesCoversInputsAndOutputs) {
  const auto graph = ParseOrDie(kText);
  const Value b = graph->FindNode("b")->output(), c = graph->FindNode("c")->output();
  const Value x = graph->FindNode("x")->output();
  graph->ReplaceUses(c, x, /*except=*/graph->commits()[0]);
  EXPECT_EQ(graph->outputs()[0].value, x);
  EXPECT_EQ(graph->commits()[0]->input(0), c);
  graph->ReplaceUses(b, x);
  EXPECT_EQ(graph->FindNode("c")->input(0), x);
}

TEST(GraphUses, MapListsNodePortPairsInOrder) {
  const auto graph = ParseOrDie(R"(graph @g(%x: f32[2]) {
  %m = test_mix(%x, %x) {k=1}
  %a, %b = test_two(%x)
  return %b
})");
  const UseMap uses(*graph);
  const auto& of_x = uses.uses(graph->FindNode("x")->output());
  ASSERT_EQ(of_x.size(), 3u);
  EXPECT_EQ(of_x[0].node->name(), "m");
  EXPECT_EQ(of_x[0].port, 0);
  EXPECT_EQ(of_x[1].port, 1);
  EXPECT_EQ(of_x[2].node->name(), "a");
  EXPECT_TRUE(uses.uses(graph->FindNode("m")->output()).empty());
  EXPECT_FALSE(uses.is_output(graph->FindNode("a")->output(0)));
  EXPECT_TRUE(uses.is_output(graph->FindNode("a")->output(1)));
  EXPECT_FALSE(uses.is_output(Value{}));
}

TEST(GraphRemove, TakesASetThatOnlyUsesItself) {
  const auto graph = ParseOrDie(
      "graph @g(%x: f32[2]) {\n %a = test_pass(%x)\n"
      " %b = test_pass(%a)\n return %x\n}");
  graph->Remove({graph->FindNode("a"), graph->FindNode("b")});
  EXPECT_EQ(Names(*graph), (std::vector<std::string>{"x"}));
  EXPECT_EQ(graph->FindNode("a"), nullptr);
  EXPECT_EQ(Append(*graph, "a")->name(), "a");  // the name is free again
}

TEST(GraphRemoveDeathTest, EndsTheProgramWhereAUserIsLeft) {
  const auto graph = ParseOrDie(kText);
  EXPECT_DEATH(graph->Remove({graph->FindNode("b")}), "a removed node still has a user");
  graph->Remove(graph->commits());
  EXPECT_DEATH(graph->Remove({graph->FindNode("c")}), "still a graph output");
}

TEST(GraphVariables, AreFoundByName) {
  Graph graph;
  for (const char* name : {"a", "b", "c"}) {
    Variable v;
    v.name = name;
    ASSERT_TRUE(graph.AddVariable(v).ok());
  }
  const absl::Status twice = graph.AddVariable(graph.variables()[1]);
  EXPECT_EQ(twice.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Message(twice), "variable \"b\" is declared twice");
  graph.RemoveVariables({"b", "no such"});
  EXPECT_EQ(graph.FindVariable("b"), nullptr);
  EXPECT_EQ(graph.FindVariable("c")->name, "c");
  EXPECT_EQ(graph.VariableIndex("c"), 1);
  EXPECT_EQ(graph.VariableIndex("b"), -1);
  EXPECT_EQ(graph.variables().size(), 2u);
}

TEST(GraphVariables, F61NodesAreFoundByVariable) {
  auto graph = ParseOrDie(R"(graph @g(%x: f32[2]) {
    %w = variable "fc.weight" : f32[2]
    %v = variable "other" : f32[2]
    %y = add(%w, %x)
    commit "fc.weight" = %y
    return %y
  })");
  const auto check = [](const Graph& g) {
    EXPECT_EQ(g.FindVariableNode("fc.weight"), g.FindNode("w"));
    EXPECT_EQ(g.FindVariableNode("w"), nullptr) << "the name of the variable, not of the node";
    EXPECT_EQ(g.FindCommit("fc.weight"), g.commits()[0]);
    EXPECT_EQ(g.FindCommit("other"), nullptr);
  };
  check(*graph);
  check(*graph->Clone());
  graph->Remove({graph->FindNode("v"), graph->commits()[0]});
  EXPECT_EQ(graph->FindVariableNode("other"), nullptr);
  EXPECT_EQ(graph->FindCommit("fc.weight"), nullptr);
  EXPECT_EQ(graph->FindVariableNode("fc.weight"), graph->FindNode("w"));
}

TEST(GraphHash, EqualTextsHaveEqualHashes) {
  const auto graph = ParseOrDie(kText);
  EXPECT_EQ(ParseOrDie(kText)->Hash(), graph->Hash());
  graph->FindNode("a")->location = {"f.cc", 3};  // Print does not show it
  EXPECT_EQ(ParseOrDie(kText)->Hash(), graph->Hash());
}

TEST(GraphHash, EveryVisibleChangeChangesIt) {
  const std::string text = kText;
  const std::pair<const char*, const char*> changes[] = {
      {"@g", "@h"},
      {"%x: f32", "%x \"y\": f32"},
      {"variable \"w\"", "variable \"w\" {kind=\"buffer\"}"},
      {"k=1", "k=2"},
      {"%c = test_mix(%b, %w)", "%c = test_mix(%w, %b)"},
      {"return %c", "return %b"},
      {"return %c", "return o=%c"},
      {"commit \"w\" = %c", "commit \"w\" = %b"},
      {"%a = test_pass(%x)", "%a = test_two(%x)"},
      {"  commit \"w\" = %c\n", ""},
      {"  return %c\n", ""},
      {"  %w = ", "  variable \"u\" : f32[2]\n  %w = "}};
  const uint64_t hash = ParseOrDie(text)->Hash();
  for (const auto& [from, to] : changes) {
    std::string changed = text;
    const size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, std::string(from).size(), to);
    for (size_t type; (type = changed.find(" : f32[2]\n  %b")) != std::string::npos;) {
      changed.erase(type, 9);  // test_two has two types; inference knows them
    }
    EXPECT_NE(ParseOrDie(changed)->Hash(), hash) << changed;
  }
}

TEST(CostOf, DefaultsToElementsAndBytes) {
  const auto graph = ParseOrDie(kText);
  const Cost cost = CostOf(*graph->FindNode("c"));
  EXPECT_EQ(cost.flops, 2);
  EXPECT_EQ(cost.bytes, 24);  // three f32[2]
  EXPECT_EQ(CostOf(*graph->FindNode("w")).bytes, 0);
  EXPECT_EQ(CostOf(*graph->commits()[0]).bytes, 16);
}

}  // namespace
}  // namespace halftone::ir
