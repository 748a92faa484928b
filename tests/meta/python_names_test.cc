// Functions and modules of nn are known to Python by their rows: no file of python_stub that makes
// the Python module names one. Comments, examples and documents may.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using PythonNameSet = std::set<std::string>;

constexpr char kFunctions[] = "graph/nn/functions.def";
constexpr char kConvolution[] = "graph/nn/convolution.def";
constexpr char kArrays[] = "graph/nn/arrays.def";
constexpr char kLosses[] = "graph/nn/losses.def";
constexpr char kRecurrence[] = "graph/nn/recurrence.def";
constexpr char kModules[] = "graph/nn/modules.def";

// Of the rows HT_FUNCTION(Value, softmax, ..), HT_TEMPLATE(F, Value, apply_where, ..) and
// HT_MODULE(Linear, ..).
PythonNameSet NamesOfRows(const std::string& rows) {
  static const std::regex row(
      "\nHT_(?:FUNCTION\\(\\w+, |TEMPLATE\\(\\w+, \\w+, |MODULE\\()(\\w+),");
  PythonNameSet names;
  for (std::sregex_iterator it(rows.begin(), rows.end(), row), end; it != end; ++it) {
    names.insert((*it)[1].str());
  }
  return names;
}

// "path:line: name" where one is bound or declared: "softmax", nn::softmax, `def softmax(`, `class
// Linear`. Many names are words of their own elsewhere: py::cast, std::max.
std::vector<std::string> NamedInFile(const SourceFile& file, const PythonNameSet& names) {
  static const std::regex naming("\"(\\w+)\"|\\bnn::(\\w+)|\\b(?:def|class) (\\w+)");
  const bool python = file.path.find(".py") != std::string::npos;
  std::vector<std::string> found;
  std::istringstream text(file.text);
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    const std::string code = line.substr(0, line.find(python ? "#" : "//"));
    for (std::sregex_iterator it(code.begin(), code.end(), naming), end; it != end; ++it) {
      const std::string name = (*it)[1].str() + (*it)[2].str() + (*it)[3].str();
      // A method, indented, is no function of nn.
      const bool method = (*it)[3].matched && it->position() > 0;
      if (names.count(name) == 0 || method) continue;
      found.push_back(file.path + ":" + std::to_string(number) + ": " + name);
    }
  }
  return found;
}

bool MakesTheModule(const std::string& path) {
  return path.rfind("python_stub/", 0) == 0 && path.find("/examples/") == std::string::npos &&
         path.find(".md") == std::string::npos;
}

TEST(PythonNames, OfFunctionsAndModulesStandInTheirRowsAlone) {
  const std::vector<SourceFile> tree = ReadTree(HALFTONE_SOURCE_DIR);
  PythonNameSet names;
  for (const SourceFile& file : tree) {
    for (const char* table : {kFunctions, kArrays, kConvolution, kLosses, kRecurrence, kModules}) {
      if (file.path == table) names.merge(NamesOfRows(file.text));
    }
  }
  ASSERT_THAT(names,
              ::testing::IsSupersetOf({"softmax", "conv2d", "apply_where", "Linear", "AvgPool2d"}));
  EXPECT_THAT(
      CheckNames(
          tree,
          {.applies = MakesTheModule,
           .named_in = [&](const auto& file) { return NamedInFile(file, names); },
           .allowed =
               {{"python_stub/bind_distributed.cc",
                 "\"pad\": of a sampler's tail; distributed.sum"},
                {"python_stub/bind_graph.cc", "\"mean\" and \"sum\": reductions of data_parallel"},
                {"python_stub/halftone/distributed.py", "distributed.sum"},
                {"python_stub/halftone/distributed.pyi", "distributed.sum"},
                {"python_stub/halftone/nn.pyi.in", "\"mean\" is a value of an argument"},
                {"python_stub/bind_handles.cc", "\"constant\": what a step is given"},
                {"python_stub/bind_optimizers.cc", "\"constant\": how a schedule prints"},
                {"python_stub/bind_values.cc", "operators and methods of Value: a @ b, x.detach()"},
                {"python_stub/halftone/optim.pyi.in", "\"min\" is a value of an argument"}}}),
      IsEmpty())
      << "the rows of " << kFunctions << " and " << kModules << " can say it";
}

TEST(PythonNames, OfRows) {
  EXPECT_THAT(NamesOfRows("//   HT_FUNCTION(Result, name, doc)\n#define HT_FUNCTION(...)\n"
                          "HT_FUNCTION(Value, glu, \"x\")\n  HT_ARG(int64_t, axis)\n"
                          "HT_TEMPLATE(F, Value, map,\n  \"x\")\nHT_MODULE(GLU, \"x\")\n"),
              ElementsAre("GLU", "glu", "map"));
}

TEST(PythonNames, InCode) {
  const PythonNameSet names = {"glu", "GLU", "cast"};
  const auto named = [&](const std::string& path, const std::string& text) {
    return NamedInFile({path, text}, names);
  };
  EXPECT_THAT(named("a.cc", "x;\nm.def(\"glu\", f);\npy::class_<nn::GLU>(m);\n"),
              ElementsAre("a.cc:2: glu", "a.cc:3: GLU"));
  EXPECT_THAT(named("a.pyi.in", "def glu(x: _Input) -> Value: ...\nclass GLU(_Layer):\n"),
              ElementsAre("a.pyi.in:1: glu", "a.pyi.in:2: GLU"));
  EXPECT_THAT(named("a.cc", "py::cast<int>(x);  // \"glu\"\n\"glues\" nn::GLUs(x)\n"), IsEmpty());
  EXPECT_THAT(named("a.pyi", "    def cast(self) -> None: ...\n# class GLU\n"), IsEmpty());
}

}  // namespace
}  // namespace halftone::meta
