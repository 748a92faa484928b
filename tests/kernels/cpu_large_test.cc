// Shapes beyond every block, tile and chunk of the native kernels: against the reference, and with
// the same bits whatever the number of threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "halftone/core/threads.h"
#include "halftone/tests/kernels/cpu_check.h"
#include "halftone/tests/support/run_kernel.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

OpCase Laid(OpCase c) {
  c.channels_last = true;
  return c;
}

void AddReductions(std::vector<OpCase>& cases) {
  const auto add = [&](const char* variant, const Shape& x, const Ints& axes) {
    for (const char* op : {"sum", "mean", "max"}) {
      cases.push_back(Case(op, variant, {Reals(x)}, {{"axes", axes}}));
    }
  };
  add("all", {100003}, {0});
  add("few_long_rows", {3, 30001}, {1});
  add("few_columns", {30001, 3}, {0});
  add("tiles_of_columns", {170, 1100}, {0});
  add("many_rows", {2000, 37}, {1});
  add("outer_and_inner", {40, 30, 60}, {0, 2});
  add("middle", {20, 90, 40}, {1});
  add("alternating", {6, 7, 8, 9, 10}, {0, 2, 4});
  cases.push_back(
      Case("sum_to_shape", "channels", {Reals({16, 24, 12, 12})}, {{"shape", Ints{24, 1, 1}}}));
  cases.push_back(Laid(Case("conv2d_grad_bias", "image", {Reals({16, 24, 15, 15})})));
  cases.push_back(Laid(Case("conv2d_grad_bias", "blocks", {Reals({16, 48, 15, 15})})));
  cases.push_back(Case("argmax", "last", {Reals({60, 1000})}, {{"axis", int64_t{1}}}));
  cases.push_back(Case("argmax", "first", {Reals({1000, 60})}, {{"axis", int64_t{0}}}));
  cases.push_back(Case("mse_loss", "long", {Reals({40000}), Reals({40000})}));
}

void AddLines(std::vector<OpCase>& cases) {
  const auto add = [&](const char* variant, const Shape& x, int64_t axis) {
    for (const char* op : {"cumsum", "prod"}) {
      cases.push_back(Case(op, variant, {Reals(x, 0.9, 1.1)}, {{"axis", axis}}));
    }
    const ir::Attributes attrs = {{"axis", axis}, {"k", int64_t{20}}};
    cases.push_back(Case("sort", variant, {Reals(x)}, attrs));
    cases.push_back(Case("sort", Concat("all_", variant), {Reals(x)}, {{"axis", axis}}));
    const OpInput picks = Whole(DType::kI64, x, 0, 40);
    cases.push_back(Case("take_along_dim", variant, {Reals(x), picks}, {{"axis", axis}}));
    cases.push_back(Case("take_along_dim_grad", variant, {Reals(x), picks},
                         {{"axis", axis}, {"dim", int64_t{41}}}));
  };
  add("rows", {70, 700}, 1);
  add("columns", {700, 70}, 0);
  add("middle", {9, 300, 20}, 1);
  cases.push_back(Case("flip", "both", {Reals({300, 215})}, {{"axes", Ints{0, 1}}}));
  cases.push_back(Case("flip", "rows", {Reals({300, 215})}, {{"axes", Ints{0}}}));
  cases.push_back(Case("pad", "image", {Reals({4, 8, 50, 50})},
                       {{"before", Ints{0, 0, 2, 3}},
                        {"after", Ints{0, 0, 1, 0}},
                        {"mode", std::string("reflect")}}));
}

void AddCopies(std::vector<OpCase>& cases) {
  cases.push_back(Case("transpose", "matrix", {Reals({300, 215})}, {{"perm", Ints{1, 0}}}));
  cases.push_back(
      Case("transpose", "heads", {Reals({3, 70, 5, 33})}, {{"perm", Ints{0, 2, 1, 3}}}));
  cases.push_back(Case("transpose", "all", {Reals({17, 35, 70})}, {{"perm", Ints{2, 0, 1}}}));
  cases.push_back(
      Case("slice", "steps", {Reals({200, 301})},
           {{"starts", Ints{3, 1}}, {"limits", Ints{199, 300}}, {"strides", Ints{2, 3}}}));
  cases.push_back(Case("slice_grad", "steps", {Reals({98, 100})},
                       {{"starts", Ints{3, 1}},
                        {"limits", Ints{199, 300}},
                        {"strides", Ints{2, 3}},
                        {"shape", Ints{200, 301}}}));
  cases.push_back(
      Case("concat", "columns", {Reals({300, 70}), Reals({300, 33})}, {{"axis", int64_t{1}}}));
  cases.push_back(Case("broadcast_to", "rows", {Reals({300, 1})}, {{"shape", Ints{4, 300, 50}}}));
  cases.push_back(Case("reshape", "flat", {Reals({300, 200})}, {{"shape", Ints{60000}}}));
  cases.push_back(Case("where", "mask", {Bools({300, 1}), Reals({300, 150}), Reals({150})}));
  for (const char* to : {"nhwc", "plain"}) {
    OpCase c = Case("relayout", to, {Reals({3, 70, 23, 19})}, {{"to", std::string(to)}});
    cases.push_back(c);
  }
}

void AddNorms(std::vector<OpCase>& cases) {
  const auto stat = [](int64_t n) { return Pinned(Reals(Shape{n}, 0.5, 1.5)); };
  for (const Shape& x :
       {Shape{4, 300, 9, 9}, Shape{700, 30}, Shape{5, 3, 70, 70}, Shape{3, 48, 20, 21}}) {
    const int64_t c = x[1];
    OpCase train =
        Case("batch_norm", "large", {Reals(x, 90, 110), stat(c), stat(c), stat(c), stat(c)});
    OpCase grad = Case("batch_norm_grad", "large", {Reals(x), Reals(x), stat(c), stat(c), stat(c)});
    train.channels_last = grad.channels_last = x.rank() == 4;
    cases.push_back(train);
    cases.push_back(grad);
  }
  cases.push_back(Case("layer_norm", "large", {Reals({500, 131}, 90, 110), stat(131), stat(131)}));
  cases.push_back(Case("layer_norm_grad", "large",
                       {Reals({500, 131}), Reals({500, 131}), stat(131), stat(500), stat(500)}));
}

void AddRest(std::vector<OpCase>& cases) {
  const ir::Attributes pool = {
      {"kernel", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", Ints{1, 1}}};
  cases.push_back(Laid(Case("max_pool2d", "large", {Distinct({4, 37, 30, 31})}, pool)));
  cases.push_back(Laid(Case("max_pool2d", "blocks", {Distinct({4, 48, 30, 31})}, pool)));
  ir::Attributes pool_grad = pool;
  pool_grad.Set("shape", Ints{4, 37, 30, 31});
  cases.push_back(
      Laid(Case("max_pool2d_grad", "large",
                {Reals({4, 37, 15, 16}), Whole(DType::kU8, {4, 37, 15, 16}, 4, 8)}, pool_grad)));
  cases.push_back(Laid(Case("dropout", "large", {Reals({5, 37, 15, 17})},
                            {{"p", 0.3}, {"seed", int64_t{123456789012}}})));
  cases.push_back(Laid(Case("add", "bias", {Reals({8, 32, 20, 20}), Reals({1, 32, 1, 1})})));
  cases.push_back(Case("softmax", "rows", {Reals({70, 1000}, -9, 9)}));
  cases.push_back(
      Case("log_softmax", "columns", {Reals({6, 50, 150}, -9, 9)}, {{"axis", int64_t{1}}}));
  cases.push_back(Case("cross_entropy", "vocabulary",
                       {Reals({30, 3001}, -9, 9), Whole(DType::kI64, {30}, 0, 3000)}));
  cases.push_back(
      Case("embedding", "large", {Reals({500, 77}), Whole(DType::kI64, {400}, 0, 499)}));
  cases.push_back(Case("embedding_grad", "large",
                       {Reals({400, 77}), Whole(DType::kI32, {400}, 0, 99)},
                       {{"rows", int64_t{300}}, {"padding_idx", int64_t{7}}}));
  cases.push_back(NoGradient(Case("embedding_grad_rows", "large",
                                  {Reals({4000, 77}), Whole(DType::kI32, {4000}, 0, 99'999)},
                                  {{"rows", int64_t{100'000}}, {"padding_idx", int64_t{7}}})));
  cases.push_back(Case("gather_grad", "last_axis",
                       {Reals({90, 300}), Whole(DType::kI64, {300}, 0, 49)},
                       {{"axis", int64_t{1}}, {"dim", int64_t{50}}}));
  cases.push_back(Case("cast", "long", {Reals({50001})}, {{"to", DType::kBF16}}));
}

void AddAttention(std::vector<OpCase>& cases) {
  const auto add = [&](const char* variant, int64_t heads, int64_t key_heads, int64_t positions,
                       ir::Attributes attrs) {
    attrs.Set("scale", 0.25);
    const Shape q{heads, positions, 16}, kv{key_heads, positions + 9, 16};
    std::vector<OpInput> inputs = {Reals(q, -2, 2), Reals(kv, -2, 2), Reals(kv, -2, 2)};
    cases.push_back(Case("scaled_dot_product_attention", variant, inputs, attrs));
    inputs.push_back(Reals(q));
    inputs.push_back(Pinned(Reals({2, heads, positions}, 2.5, 3.5)));
    inputs.push_back(Reals(q));
    cases.push_back(Case("scaled_dot_product_attention_grad", variant, inputs, attrs));
  };
  add("one_head", 1, 1, 700, {{"is_causal", true}});
  add("groups", 6, 2, 300, {{"dropout_p", 0.2}, {"seed", int64_t{9}}});
}

std::vector<OpCase> LargeCases() {
  std::vector<OpCase> cases;
  AddReductions(cases);
  AddLines(cases);
  AddCopies(cases);
  AddNorms(cases);
  AddRest(cases);
  AddAttention(cases);
  return cases;
}

TEST(CpuLarge, AgreeWithTheReference) {
  for (const OpCase& c : LargeCases()) {
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      for (const ir::Layout layout : LayoutsOf(c)) CheckCandidates(c, dtype, layout);
    }
  }
}

// A product of so many rows is computed in pieces, the last one of 8 rows: row m of a has a one in column m % 256
// alone, so row m of the product is row m % 256 of b.
TEST(CpuLarge, PiecesOfAProductAreItsRows) {
  constexpr int64_t kRows = 8200, kTerms = 256, kColumns = 256;
  for (const bool transposed : {false, true}) {
    const Shape shape = transposed ? Shape{kTerms, kRows} : Shape{kRows, kTerms};
    const OpCase c = Case("matmul", "pieces", {Reals(shape), Reals({kTerms, kColumns})},
                          {{"transpose_a", transposed}});
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
      std::vector<double> ones(static_cast<size_t>(kRows * kTerms), 0.0);
      for (int64_t m = 0; m < kRows; ++m) {
        const int64_t k = m % kTerms;
        ones[static_cast<size_t>(transposed ? k * kRows + m : m * kTerms + k)] = 1;
      }
      inputs[0] = Tensor::Of(dtype, shape, ones);
      const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
      const auto kernel =
          kernels::KernelRegistry::Global().Select(*CaseNode(*graph), Device::Kind::kCpu);
      ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
      const std::string pieces = (*kernel)->implementation();
      EXPECT_EQ(std::count(pieces.begin(), pieces.end(), '+'), 2) << pieces;
      const auto outputs = RunKernel(**kernel, *CaseNode(*graph), inputs);
      ASSERT_TRUE(outputs.ok()) << Message(outputs.status());
      int64_t wrong = 0;
      for (int64_t i = 0; i < kRows * kColumns; ++i) {
        const int64_t of_b = i / kColumns % kTerms * kColumns + i % kColumns;
        wrong += (*outputs)[0].at(i) != inputs[1].at(of_b) ? 1 : 0;
      }
      EXPECT_EQ(wrong, 0) << Name(dtype) << (transposed ? ", transposed" : "");
    }
  }
}

TEST(CpuLarge, BitsDoNotDependOnTheThreads) {
  const int before = NumThreads();
  for (const OpCase& c : LargeCases()) {
    const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF32);
    for (const ir::Layout layout : LayoutsOf(c)) {
      const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF32, layout);
      const ir::Node& node = *CaseNode(*graph);
      for (const kernels::KernelCandidate* candidate : FastCandidates(c.op)) {
        if (candidate->tier < kernels::KernelTier::kNative) continue;
        std::vector<std::vector<Tensor>> results;
        for (int threads : {1, 2, 5}) {
          SetNumThreads(threads);
          ASSERT_TRUE(UseNumThreads().ok());
          auto kernel = kernels::KernelRegistry::Global().CreateNamed(node, candidate->name);
          if (!kernel.ok()) continue;
          const auto outputs = RunKernel(**kernel, node, inputs);
          ASSERT_TRUE(outputs.ok()) << Message(outputs.status());
          results.push_back(*outputs);
        }
        for (size_t run = 1; run < results.size(); ++run) {
          for (size_t i = 0; i < results[run].size(); ++i) {
            EXPECT_TRUE(BitEqual(results[run][i], results[0][i]))
                << c.name << ": " << candidate->name << ", output " << i << ", run " << run;
          }
        }
      }
    }
  }
  SetNumThreads(before);
  ASSERT_TRUE(UseNumThreads().ok());
}

}  // namespace
}  // namespace halftone::testing
