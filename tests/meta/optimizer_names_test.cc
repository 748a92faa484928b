// An optimizer is described once: its name stands in no product file that its description should
// have made unnecessary. Comments, examples and documents may name one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "halftone/tests/meta/tree_rules.h"

namespace halftone::meta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using OptimizerNameSet = std::set<std::string>;

constexpr char kDescriptions[] = "graph/ops/support/optimizers.def";

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The rules and ops of the rows, and the names of the updates, in lower case: "adamw",
// "adam_update", "adam".
OptimizerNameSet NamesOf(const std::string& descriptions) {
  OptimizerNameSet names;
  const std::regex row(R"re(\n *HT_(UPDATE|OPTIMIZER)\((\w+), "(\w+)")re");
  for (std::sregex_iterator it(descriptions.begin(), descriptions.end(), row), end; it != end;
       ++it) {
    names.insert(Lower((*it)[2].str()));
    names.insert(Lower((*it)[3].str()));
  }
  return names;
}

// "path:line: name" for each of the names that stands in code as a word or a part of a word in
// CamelCase: adamw, AdamWOptions, LaunchAdam.
std::vector<std::string> NamedIn(const SourceFile& file, const OptimizerNameSet& names) {
  std::vector<std::string> found;
  std::istringstream text(file.text);
  std::string line;
  const bool python = file.path.find(".py") != std::string::npos;
  for (int number = 1; std::getline(text, line); ++number) {
    const std::string code = line.substr(0, line.find(python ? "#" : "//"));
    const std::string lower = Lower(code);
    for (const std::string& name : names) {
      for (size_t at = lower.find(name); at != std::string::npos; at = lower.find(name, at + 1)) {
        const size_t end = at + name.size();
        const auto letter = [&](size_t i) {
          return i < code.size() && std::isalnum(static_cast<unsigned char>(code[i])) != 0;
        };
        const auto small = [&](size_t i) {
          return i < code.size() && std::islower(static_cast<unsigned char>(code[i])) != 0;
        };
        // "adam" is no word of "macadam" or "adamant"; it is one of "LaunchAdam" and "kAdam".
        const bool begins = at == 0 || !letter(at - 1) || !small(at);
        const bool ends = !letter(end) || !small(end);
        if (!begins || !ends) continue;
        found.push_back(file.path + ":" + std::to_string(number) + ": " + name);
        break;
      }
    }
  }
  return found;
}

bool IsProduct(const std::string& path) {
  for (const char* folder : {"tests/", "benchmarks/", "examples/", "docs/"}) {
    if (path.rfind(folder, 0) == 0) return false;
  }
  return path.find("/examples/") == std::string::npos && path.find(".md") == std::string::npos;
}

OptimizerNameSet Described() {
  std::ifstream in(std::string(HALFTONE_SOURCE_DIR) + "/" + kDescriptions);
  std::ostringstream text;
  text << in.rdbuf();
  return NamesOf(text.str());
}

TEST(OptimizerNames, AreInNoOtherProductFile) {
  const OptimizerNameSet names = Described();
  ASSERT_THAT(names,
              ::testing::IsSupersetOf({"sgd", "sgd_update", "adam", "adam_update", "adamw"}));
  EXPECT_THAT(
      CheckNames(ReadTree(HALFTONE_SOURCE_DIR),
                 {.applies = IsProduct,
                  .named_in = [&](const auto& file) { return NamedIn(file, names); },
                  .allowed = {{kDescriptions, "the descriptions"},
                              {"optim/update_nodes.cc", "the update that is no optimizer's"}}}),
      IsEmpty());
}

TEST(OptimizerNames, OfRows) {
  EXPECT_THAT(NamesOf("//   HT_UPDATE(Name, op)\n\nHT_UPDATE(Lamb, \"lamb_update\", 6,\n"
                      "  HT_HYPER(a, double)\nHT_OPTIMIZER(LAMB, \"lamb\", Lamb, 1)\n"),
              ElementsAre("lamb", "lamb_update"));
}

TEST(OptimizerNames, InCode) {
  const OptimizerNameSet names = {"lamb"};
  const auto named = [&](const std::string& path, const std::string& text) {
    return NamedIn({path, text}, names);
  };
  EXPECT_THAT(named("a.cc", "int x;\nif (rule == \"lamb\") return;\n"),
              ElementsAre("a.cc:2: lamb"));
  EXPECT_THAT(named("a.cc", "LaunchLamb(x);\nstruct LAMBOptions {};\nkLamb\nlamb_update\n"),
              ElementsAre("a.cc:1: lamb", "a.cc:2: lamb", "a.cc:3: lamb", "a.cc:4: lamb"));
  EXPECT_THAT(named("a.py", "x = optim.LAMB  # ours\n"), ElementsAre("a.py:1: lamb"));
  EXPECT_THAT(named("a.cc", "// As in Lamb.\nclambake lambda lambs\n"), IsEmpty());
}

}  // namespace
}  // namespace halftone::meta
