// What follows from the descriptions in optimizers.def: ranges hold the defaults, states are the
// op's ports, and the guide lists every optimizer as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "halftone/graph/ir/op.h"
#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/optim/optimizer.h"
#include "halftone/optim/update_rule.h"

namespace halftone::testing {
namespace {

using ops::HyperInfo;
using ops::OptimizerInfo;
using ops::StateInfo;

std::string Text(double value) { return Concat(value); }
std::string Text(bool value) { return value ? "true" : "false"; }
std::string Text(const std::array<double, 2>& pair) {
  return Concat("{", pair[0], ", ", pair[1], "}");
}

// The line of an optimizer in the guide.
template <typename Options>
std::string GuideLine(const Options& options) {
  std::string own, states;
  std::apply(
      [&](const auto&... field) {
        ((own += Concat(own.empty() ? "" : ", ", field.name, " = ", Text(options.*field.member))),
         ...);
      },
      OwnFields(options));
  for (const StateInfo& state : ops::AllStates(typename Options::Update())) {
    states += Concat(states.empty() ? "" : ", ", state.name);
    if (*state.hyper != '\0') states += Concat(" (with ", state.hyper, ")");
  }
  return Concat("| `", Options::kTitle, "` | ", own, " | ", states, " | ", Options::kDoc, " |\n");
}

TEST(Described, TheGuideListsEveryOptimizer) {
  std::ifstream in(std::string(HALFTONE_SOURCE_DIR) + "/docs/guide/optimizers.md");
  std::ostringstream guide;
  guide << in.rdbuf();
  optim::ForEachOptions([&guide](const auto& options) {
    EXPECT_THAT(guide.str(), ::testing::HasSubstr(GuideLine(options)));
  });
}

TEST(Described, DefaultsAreInRange) {
  ops::ForEachOptimizer([](const OptimizerInfo& info, const auto& update) {
    EXPECT_TRUE(CheckHypers(ops::HyperOwner::kOption, info.title, update).ok());
    EXPECT_TRUE(ops::kNotNegative.holds(info.lr)) << info.title;
  });
}

// A default of the op is that of the first optimizer made of it, so that a printed graph leaves it
// out; and the marker holds every option.
TEST(Described, TheMarkerHasEveryOption) {
  const ir::OpRecord* marker = ir::OpRegistry::Global().Find("optimizer");
  std::set<std::string> attrs;
  for (const ir::AttrSpec& attr : marker->attrs) attrs.insert(attr.name);
  optim::ForEachOptions([&attrs](const auto& options) {
    optim::ForEachField(options, [&attrs](const auto& field) {
      for (const char* attr : field.attrs) {
        if (attr == nullptr) continue;
        EXPECT_EQ(attrs.count(attr), 1u) << attr;
      }
    });
  });
}

TEST(Described, StatesArePortsOfTheOp) {
  ops::ForEachUpdate([]<typename Update>(const Update& update) {
    const ir::OpRecord* op = ir::OpRegistry::Global().Find(ops::kUpdateInfo<Update>.op);
    ASSERT_NE(op, nullptr);
    const std::vector<StateInfo> states = ops::AllStates(update);
    ASSERT_EQ(op->outputs.size(), 2 + states.size());
    EXPECT_EQ(op->outputs.back().name, "new_compensation");
    bool seen_optional = false;
    for (size_t i = 0; i < states.size(); ++i) {
      EXPECT_EQ(op->outputs[1 + i].name, Concat("new_", states[i].port));
      seen_optional = seen_optional || *states[i].hyper != '\0';
      EXPECT_EQ(seen_optional, *states[i].hyper != '\0') << "those that may be absent come last";
      if (!seen_optional) {
        EXPECT_EQ(op->inputs.at(ops::UpdatePort::kFirstState + i).name, states[i].port);
      }
    }
    EXPECT_TRUE(op->inputs.back().variadic) << "a compensation may be absent";
  });
}

TEST(Described, NamesAreTheirOwn) {
  std::set<std::string> rules, titles;
  ops::ForEachOptimizer([&](const OptimizerInfo& info, const auto&) {
    EXPECT_TRUE(rules.insert(info.rule).second) << info.rule;
    EXPECT_TRUE(titles.insert(info.title).second) << info.title;
    EXPECT_STRNE(info.doc, "");
  });
  EXPECT_THAT(ops::OptimizerRules(), ::testing::SizeIs(rules.size()));
}

}  // namespace
}  // namespace halftone::testing
