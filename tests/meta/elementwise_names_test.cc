// Elementwise ops are known by their rows in graph/ops/support/elementwise.def: no other product
// file names one that the table could name for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "halftone/tests/meta/tree_rules.h"

namespace halftone::meta {
namespace {

constexpr char kTable[] = "graph/ops/support/elementwise.def";
constexpr char kActivations[] = "graph/ops/support/elementwise_activations.def";

// Files that name elementwise ops for another reason than that the ops exist.
const std::map<std::string, std::string>& Allowed() {
  static const auto* const allowed = new std::map<std::string, std::string>{
      {"graph/ir/expr.cc", "the operators of expressions, a layer below the table"},
      {"graph/nn/attention.cc", "\"relu\" and \"gelu\" are values of an option"},
      {"graph/nn/functional_activation.cc",
       "gelu: a function with an attribute is written out; clamp calls hardtanh"},
      {"graph/nn/functional_distance.cc", "losses are formulas of them"},
      {"graph/nn/functional_loss_formula.cc", "losses are formulas of them"},
      {"graph/nn/functions.def", "\"tanh\" is a value of an attribute"},
      {"graph/nn/losses.def", "sigmoid in a formula for people"},
      {"graph/nn/modules.def", "\"tanh\" is a value of an attribute"},
      {"graph/nn/recurrence.def", "sigmoid and tanh in formulas for people"},
      {"graph/ops/gru.cc", "sigmoid and tanh in formulas for people"},
      {"graph/ops/lstm.cc", "formulas for people; the ops in its gradient"},
      {"graph/runtime/scaled_values.cc",
       "by what a loss scale comes into a value and goes out of it"},
      {"kernels/reference/ops/recurrence.cc", "functions of the C++ library"},
      {"graph/onnx/rules/activations.cc", "what they are called in ONNX"},
      {"graph/onnx/rules/arithmetic.cc", "what they are called in ONNX"},
      {"graph/onnx/rules/compare.cc", "what they are called in ONNX"},
      {"graph/onnx/rules/indices.cc", "\"add\" is a value of an attribute"},
      {"graph/onnx/rules/matrices.cc", "builds a graph of them"},
      {"graph/onnx/rules/recurrence.cc", "\"Tanh\" is a value of an attribute"},
      {"graph/onnx/rules/resizing.cc", "\"floor\" is a value of an attribute"},
      {"graph/ops/elementwise.cc", "\"tanh\" is a value of an attribute"},
      {"kernels/reference/ops/elementwise.cc", "\"tanh\" is a value of an attribute"},
      {"kernels/cpu/ops/simd_unary.cc", "\"tanh\" is a value of an attribute"},
      {"kernels/cuda/ops/elementwise.cc", "\"tanh\" is a value of an attribute"},
      {"kernels/cpu/simd/math-inl.h", "Tanh is a function of Highway"},
      {"graph/ops/attention.cc", "the ops in its gradient"},
      {"graph/ops/batch_norm.cc", "the ops in its gradient"},
      {"graph/ops/cross_entropy.cc", "the ops in its gradients"},
      {"graph/ops/layer_norm.cc", "the ops in its gradient"},
      {"graph/ops/pool2d_grad.cc", "the ops in their gradients"},
      {"graph/ops/reduction.cc", "the ops in their gradients"},
      {"graph/ops/regression_losses.cc", "the ops in their gradients"},
      {"optim/update_nodes.cc", "builds a graph of them"},
      {"passes/amp/scaling.cc", "builds a graph of them"},
      {"python_stub/bind_optimizers.cc", "\"cos\" and \"abs\" are values of arguments"},
      {"python_stub/halftone/optim.pyi.in", "\"cos\" is a value of an argument"},
      {"passes/autodiff/autodiff.cc", "builds a graph of them"},
      {"passes/rewrite/pool_first.cc", "what holds of relu beside a maximum, and of no other op"},
      {"passes/autodiff/insert_all_reduce.cc", "builds a graph of them"},
      {"passes/autodiff/insert_optimizers.cc", "builds a graph of them"},
      {"passes/autodiff/optimizer_lowering.cc", "builds a graph of them"},
      {"passes/autodiff/reverse_sweep.cc", "builds a graph of them"},
      {"passes/autodiff/accumulate_gradients.cc", "counts, and joins flags"},
      {"passes/autodiff/row_gradients.cc", "looks for sums, and for products with a scale"},
      {"passes/rewrite/simplify_arithmetic_rules.cc", "algebra: a rule is about certain ops"},
      {"tools/support/peak.cc", "measures one"},
      {"python_stub/examples/train_distributed.py", "a program, as users write them"},
      {"python_stub/examples/train_mlp.py", "an example uses them"},
  };
  return *allowed;
}

struct Names {
  std::set<std::string> ops;
  // Of activations, their gradients and layers, after which nothing else is called.
  std::set<std::string> words;
};

Names ReadNames(const std::string& table) {
  static const std::regex row("\nHT_([A-Z_]+)\\((\\w+), (\\w+),[ \n]*(\\w*)");
  Names names;
  for (std::sregex_iterator it(table.begin(), table.end(), row), end; it != end; ++it) {
    const std::string kind = (*it)[1], op = (*it)[2];
    names.ops.insert(op);
    const bool is_layer = kind == "ACTIVATION" || kind == "TUNABLE";
    if (is_layer || kind == "GRADIENT") names.words.insert(op);
    if (is_layer) names.words.insert((*it)[4]);
  }
  return names;
}

// The line without a comment of C++, Python or CMake; `#include` and its likes stay.
std::string Code(const std::string& line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (i > 0 && line[i - 1] != ' ') continue;
    const char next = i + 1 < line.size() ? line[i + 1] : ' ';
    if (line[i] == '/' && next == '/') return line.substr(0, i);
    if (line[i] == '#' && next == ' ') return line.substr(0, i);
  }
  return line;
}

bool IsWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Where code names an op: as a string, "exp", or, of activations, in any way.
std::vector<std::string> NamesIn(const SourceFile& file, const Names& names) {
  std::vector<std::string> found;
  std::string line;
  std::istringstream lines(file.text);
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string code = Code(line);
    for (size_t begin = 0, end = 0; begin < code.size(); begin = end + 1) {
      end = begin;
      while (end < code.size() && IsWordChar(code[end])) ++end;
      if (end == begin) continue;
      const std::string word = code.substr(begin, end - begin);
      const bool quoted =
          begin > 0 && code[begin - 1] == '"' && end < code.size() && code[end] == '"';
      if (names.words.count(word) > 0 || (quoted && names.ops.count(word) > 0)) {
        found.push_back(file.path + ":" + std::to_string(number) + ": " + word);
      }
    }
  }
  return found;
}

bool IsProductFile(const std::string& path) {
  if (path == kTable || path == kActivations || path == "kernels/functors-inl.h") return false;
  if (path.size() > 3 && path.compare(path.size() - 3, 3, ".md") == 0) return false;
  for (const char* other : {"tests/", "docs/", "benchmarks/", "examples/"}) {
    if (path.rfind(other, 0) == 0) return false;
  }
  return true;
}

TEST(ElementwiseNames, StandInTheTableAlone) {
  const std::vector<SourceFile> tree = ReadTree(HALFTONE_SOURCE_DIR);
  std::string rows;
  for (const SourceFile& file : tree) {
    if (file.path == kTable || file.path == kActivations) rows += file.text;
  }
  const Names names = ReadNames(rows);
  ASSERT_GE(names.ops.size(), 60u);
  EXPECT_THAT(CheckNames(tree, {.applies = IsProductFile,
                                .named_in = [&](const auto& file) { return NamesIn(file, names); },
                                .allowed = Allowed()}),
              ::testing::IsEmpty())
      << "the rows of " << kTable << " can say it";
}

TEST(ElementwiseNames, SeesThemInCodeButNotInComments) {
  const Names names = ReadNames(
      "// HT_UNARY(op, Formula, ...)\n"
      "HT_UNARY(exp, Exp,\n         .doc = \"\")\n"
      "HT_ACTIVATION(silu, Silu, SiLU,\n              .doc = \"\")\n"
      "HT_GRADIENT(silu_grad, SiluGrad, .doc = \"\")\n"
      "HT_TUNABLE(elu, Elu, ELU, (alpha, 1.0),\n  .doc = \"\")\n");
  EXPECT_THAT(names.ops, ::testing::ElementsAre("elu", "exp", "silu", "silu_grad"));
  EXPECT_THAT(names.words, ::testing::ElementsAre("ELU", "SiLU", "elu", "silu", "silu_grad"));
  const auto in = [&](const char* text) { return NamesIn({"a.cc", text}, names); };
  EXPECT_THAT(in("x\n{\"exp\", \"silu_grad\"}"),
              ::testing::ElementsAre("a.cc:2: exp", "a.cc:2: silu_grad"));
  EXPECT_THAT(in("class SiLU : public Module {"), ::testing::ElementsAre("a.cc:1: SiLU"));
  EXPECT_THAT(in("    silu,"), ::testing::ElementsAre("a.cc:1: silu"));
  EXPECT_THAT(in("y = std::exp(x);  // silu\n  // \"exp\"\n# silu\nexponent, SiLUs"),
              ::testing::IsEmpty());
}

}  // namespace
}  // namespace halftone::meta
