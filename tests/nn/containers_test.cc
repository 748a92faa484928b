// Sequential, ModuleList and ModuleDict: names, order, access, what fits into emplace.
#include <gtest/gtest.h>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> ParameterNames(const Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : module.named_parameters()) names.push_back(name);
  return names;
}

// A module whose interface is not forward(x).
class Scale : public Module {
 public:
  explicit Scale(double by) : by(Shape{}, {ir::Initializer::Kind::kConstant, by, 0}) {
    register_parameter("by", this->by);
  }
  Value Times(const Value& x, const Value& y) {
    const ModuleScope scope(*this);
    return x * by + y;
  }
  Parameter by;
};

TEST(ModuleListTest, NamesAreTheIndices) {
  ModuleList list;
  list.emplace<Linear>(2, 2, {.bias = false});
  list.append(std::make_unique<LayerNorm>(std::vector<int64_t>{2}));
  list.emplace<Linear>(2, 2);
  EXPECT_EQ(list.size(), 3u);
  EXPECT_THAT(ParameterNames(list),
              ElementsAre("0.weight", "1.weight", "1.bias", "2.weight", "2.bias"));
  EXPECT_EQ(list[1].description(), "LayerNorm[2]");
  EXPECT_EQ(list.description(), "ModuleList(3)");
}

TEST(ModuleListTest, InsertMovesTheNamesBehindIt) {
  ModuleList list;
  list.emplace<Linear>(1, 1, {.bias = false});
  Module& second = list.emplace<Linear>(2, 2);
  Module& first = list.insert(1, std::make_unique<LayerNorm>(std::vector<int64_t>{3}));
  EXPECT_EQ(&list[1], &first);
  EXPECT_EQ(&list[2], &second);
  EXPECT_THAT(ParameterNames(list),
              ElementsAre("0.weight", "1.weight", "1.bias", "2.weight", "2.bias"));
  list.insert(0, std::make_unique<ReLU>());
  EXPECT_THAT(ParameterNames(list),
              ElementsAre("1.weight", "2.weight", "2.bias", "3.weight", "3.bias"));
  list.insert(9, std::make_unique<ReLU>());
  EXPECT_EQ(Message(list.status()), "ModuleList: insert at 9; expected 0..4");
}

TEST(ModuleListTest, OfOneTypeGivesThatType) {
  class Stack : public Module {
   public:
    Stack() {
      scales.emplace(2);
      scales.emplace(3);
      register_module("scales", scales);
    }
    Value Apply(Value x, const Value& y) {
      for (Scale& scale : scales) x = scale.Times(x, y);
      return scales[0].Times(x, y);
    }
    ModuleListOf<Scale> scales;
  };
  Stack stack;
  FnGraph graph([&](const Values& in) -> Values { return {stack.Apply(in[0], in[1])}; });
  graph.add_module("stack", stack);
  // ((5 * 2 + 1) * 3 + 1) * 2 + 1.
  EXPECT_THAT(Call1(graph, {F32({}, {5}), F32({}, {1})}), ElementsAre(69));
  EXPECT_THAT(graph.named_parameters()[1].first, "stack.scales.1.by");
  EXPECT_EQ(graph.compiled_graph()->FindNode("mul_1")->path(), "stack/scales/1/mul_1");
}

TEST(ModuleListTest, ModesAndWishesReachItsModules) {
  ModuleList list;
  list.emplace<Dropout>();
  list.emplace<Sequential>().emplace<Dropout>();
  list.eval();
  for (Module& module : list) EXPECT_FALSE(module.is_training());
  FnGraph graph([&](const Values& in) -> Values { return {list[1](list[0](in[0]))}; });
  graph.add_module("list", list);
  const Tensor x = Tensor::Full(DType::kF32, {64}, 1);
  EXPECT_TRUE(BitEqual(Call(graph, {x})[0], x));
  list.freeze();
  EXPECT_TRUE(list[1].is_frozen());
}

TEST(ModuleListTest, CannotBeCalled) {
  ModuleList list;
  list.emplace<ReLU>();
  FnGraph graph([&](const Values& in) -> Values { return {list(in[0])}; });
  graph.add_module("list", list);
  EXPECT_THAT(Message(CallStatus(graph, {F32({1}, {1})})),
              HasSubstr("ModuleList(1) has no forward(x); expected"));
}

TEST(ModuleDictTest, KeysAreNamesInOrder) {
  ModuleDict dict;
  dict.emplace<Linear>("right", 1, 1, {.bias = false});
  dict.insert("left", std::make_unique<Linear>(1, 1));
  EXPECT_EQ(dict.size(), 2u);
  EXPECT_TRUE(dict.contains("left"));
  EXPECT_EQ(dict.find("middle"), nullptr);
  EXPECT_EQ(&dict["left"], dict.find("left"));
  EXPECT_THAT(ParameterNames(dict), ElementsAre("right.weight", "left.weight", "left.bias"));
  std::vector<std::string> keys;
  for (const auto& [key, module] : dict) {
    keys.push_back(key);
    EXPECT_EQ(module.description(), "Linear(1, 1)");
  }
  EXPECT_THAT(keys, ElementsAre("right", "left"));
}

TEST(ModuleDictTest, RefusesKeysThatCannotBeNames) {
  ModuleDict twice;
  twice.emplace<ReLU>("a");
  twice.emplace<ReLU>("a");
  EXPECT_EQ(Message(twice.status()), "a module has two members named \"a\"");
  EXPECT_EQ(twice.size(), 1u);
  ModuleDict dotted;
  dotted.emplace<ReLU>("a.b");
  EXPECT_EQ(Message(dotted.status()),
            "\"a.b\" cannot name a member of a module; "
            "expected a non-empty name without '.', '/' and '\"'");
}

TEST(ModuleDictTest, HoldsListsAndTheNamesNest) {
  ModuleDict towers;
  towers.emplace<ModuleList>("left").emplace<Linear>(1, 1);
  auto& right = towers.emplace<ModuleListOf<Scale>>("right");
  right.emplace(4);
  FnGraph graph([&](const Values& in) -> Values { return {right[0].Times(in[0], in[0])}; });
  graph.add_module("towers", towers);
  EXPECT_THAT(Call1(graph, {F32({}, {2})}), ElementsAre(10));
  EXPECT_THAT(ParameterNames(towers), ElementsAre("left.0.weight", "left.0.bias", "right.0.by"));
  EXPECT_EQ(graph.compiled_graph()->FindNode("mul")->path(), "towers/right/0/mul");
}

TEST(ModuleDictTest, OfOneTypeGivesThatType) {
  ModuleDictOf<Scale> dict;
  dict.emplace("two", 2);
  EXPECT_EQ(dict["two"].by.value().item(), 2);
  EXPECT_EQ(dict.description(), "ModuleDict(1)");
}

TEST(SequentialTest, F24OptionsMayBeBraced) {
  Sequential net;
  net.emplace<Conv2d>(3, 8, 3, {.padding = 1});
  net.emplace<Conv2d>(8, 8, Size2d{3, 1}, {.stride = {2, 1}, .bias = false});
  net.emplace<BatchNorm2d>(8, {.affine = false});
  net.emplace<MaxPool2d>(2, {.stride = 2});
  net.emplace<Flatten>();
  net.emplace<Linear>(8, 4, {.bias = false});
  net.emplace<Linear>(4, 4, false);
  net.emplace<LayerNorm>(std::vector<int64_t>{4}, {.affine = false});
  net.emplace<Embedding>(4, 2, {.padding_idx = 1});
  net.append(Conv2d(3, 8, {3, 5}, {.padding = {1, 2}}));
  EXPECT_TRUE(net.status().ok()) << net.status();
  EXPECT_THAT(ParameterNames(net), ElementsAre("0.weight", "0.bias", "1.weight", "5.weight",
                                               "6.weight", "8.weight", "9.weight", "9.bias"));
}

TEST(SequentialTest, F24LinearTakesOptionsAndABool) {
  EXPECT_TRUE(Linear(2, 2).bias.defined());
  EXPECT_TRUE(Linear(2, 2, {}).bias.defined()) << "the defaults";
  EXPECT_TRUE(Linear(2, 2, true).bias.defined());
  EXPECT_FALSE(Linear(2, 2, false).bias.defined());
  EXPECT_FALSE(Linear(2, 2, {.bias = false}).bias.defined());
  EXPECT_FALSE(Linear(2, 2, LinearOptions{.bias = false}).bias.defined());
}

TEST(SequentialTest, IsAList) {
  Sequential net(Linear(1, 2), ReLU());
  net.insert(1, std::make_unique<Linear>(2, 2));
  int64_t count = 0;
  for (Module& module : net) count += static_cast<int64_t>(module.named_parameters().size());
  EXPECT_EQ(count, 4);
  FnGraph graph([&](const Values& in) -> Values { return {net(in[0])}; });
  graph.add_module("net", net);
  EXPECT_EQ(Call(graph, {F32({1, 1}, {1})})[0].shape(), (Shape{1, 2}));
}

TEST(ModuleListTest, MayGrowAfterAGraphHasIt) {
  ModuleList list;
  list.emplace<Linear>(1, 1);
  FnGraph graph([&](const Values& in) -> Values { return {list[list.size() - 1](in[0])}; });
  graph.add_module("list", list);
  EXPECT_TRUE(CallStatus(graph, {F32({1, 1}, {1})}).ok());
  list.emplace<Linear>(1, 2);
  EXPECT_EQ(Call(graph, {F32({1, 1}, {1})})[0].shape(), (Shape{1, 2}));
  EXPECT_EQ(graph.state_dict()->count("list.1.weight"), 1u);
}

}  // namespace
}  // namespace halftone::nn
