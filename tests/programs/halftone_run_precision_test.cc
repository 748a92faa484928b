// halftone_run --compare f32,f16, --bisect and --ranges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "halftone/core/io/npy.h"
#include "halftone/graph/ir/text.h"
#include "halftone/passes/amp/policy.h"
#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"
#include "halftone/tools/support/culprits.h"
#include "halftone/tools/support/precision.h"

namespace halftone::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Search {
  std::vector<std::string> found;
  int trials = 0;
};

// `count` candidates, of which these must be left out; the first `suspects` are tried first.
Search FindPlanted(int count, const std::vector<int>& planted, size_t suspects = 0) {
  std::vector<std::string> candidates;
  for (int i = 0; i < count; ++i) candidates.push_back(Concat("n", i));
  Search search;
  const auto found = tools::FindCulprits(
      candidates,
      [&](const std::vector<std::string>& out) -> absl::StatusOr<bool> {
        ++search.trials;
        return std::all_of(planted.begin(), planted.end(), [&](int p) {
          return std::find(out.begin(), out.end(), candidates[static_cast<size_t>(p)]) != out.end();
        });
      },
      suspects);
  EXPECT_TRUE(found.ok()) << found.status();
  if (found.ok()) search.found = *found;
  return search;
}

TEST(FindCulprits, FindsOneOf300InAtMost11Trials) {
  for (int p = 0; p < 300; ++p) {
    const Search search = FindPlanted(300, {p});
    EXPECT_THAT(search.found, ElementsAre(Concat("n", p)));
    EXPECT_LE(search.trials, 11) << p;
  }
}

TEST(FindCulprits, FindsSeveralAndNone) {
  EXPECT_THAT(FindPlanted(300, {7, 8, 250}).found, ElementsAre("n7", "n8", "n250"));
  EXPECT_THAT(FindPlanted(3, {0, 1, 2}).found, ElementsAre("n0", "n1", "n2"));
  EXPECT_THAT(FindPlanted(1, {0}).found, ElementsAre("n0"));
  const Search none = FindPlanted(300, {});
  EXPECT_THAT(none.found, IsEmpty());
  EXPECT_EQ(none.trials, 1);
  EXPECT_THAT(FindPlanted(0, {}).found, IsEmpty());
}

TEST(FindCulprits, TriesSuspectsFirst) {
  for (int p = 0; p < 300; ++p) {
    const Search search = FindPlanted(300, {p}, 20);
    EXPECT_THAT(search.found, ElementsAre(Concat("n", p)));
    EXPECT_LE(search.trials, p < 20 ? 8 : 11) << p;
    EXPECT_LE(FindPlanted(300, {p}, 1).trials, p < 1 ? 3 : 11) << p;
    EXPECT_LE(FindPlanted(300, {p}, 300).trials, 11) << p;
  }
  EXPECT_THAT(FindPlanted(300, {3, 7, 250}, 20).found, ElementsAre("n3", "n7", "n250"));
  EXPECT_THAT(FindPlanted(300, {7, 8}, 20).found, ElementsAre("n7", "n8"));
  EXPECT_THAT(FindPlanted(300, {}, 20).found, IsEmpty());
  EXPECT_THAT(FindPlanted(4, {0, 1, 2, 3}, 2).found, ElementsAre("n0", "n1", "n2", "n3"));
}

TEST(FindCulprits, AnErrorEndsIt) {
  const auto found = tools::FindCulprits(
      {"a"}, [](const auto&) -> absl::StatusOr<bool> { return OutOfRange("no"); });
  EXPECT_EQ(found.status().code(), absl::StatusCode::kOutOfRange);
}

// What keeps failing is an error, not a set that claims to work.
TEST(FindCulprits, NothingHelps) {
  for (const std::vector<std::string>& candidates :
       {std::vector<std::string>{}, {"a"}, {"a", "b", "c"}}) {
    const auto found =
        tools::FindCulprits(candidates, [](const auto&) -> absl::StatusOr<bool> { return false; });
    EXPECT_EQ(found.status().message(), Concat("it still fails with ", candidates.size(), " of ",
                                               candidates.size(), " left out"));
  }
}

TEST(InPrecision, KeepsThePolicyOfTheGraph) {
  const auto graph = ir::Parse(
      "graph @g(%x: f32[2,2]) {\n"
      "  amp() {dtype=bf16, deny=[\"softmax\"], trim=false}\n"
      "  %y = matmul(%x, %x)\n"
      "  return %y\n"
      "}\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto f32 = tools::InPrecision(**graph, DType::kF32);
  ASSERT_TRUE(f32.ok()) << f32.status();
  EXPECT_THAT((*f32)->ToString(), ::testing::Not(HasSubstr("amp(")));
  const auto f16 = tools::InPrecision(**graph, DType::kF16, {"y"});
  ASSERT_TRUE(f16.ok()) << f16.status();
  EXPECT_THAT((*f16)->ToString(),
              HasSubstr("amp() {deny=[\"softmax\", \"y\"], dtype=f16, trim=false}"));
  (*graph)->FindNode("y")->amp.decided = true;
  EXPECT_EQ(tools::InPrecision(**graph, DType::kF16).status().message(),
            "the precision of %y is decided already; expected a graph as traced");
}

class HalftoneRunPrecision : public ::testing::Test {
 protected:
  Result Run(const std::string& graph, const std::string& options) {
    WriteBytes(dir_.Path("graph.txt"), graph);
    return Start("tools/halftone_run", dir_.Path("graph.txt") + " " + options);
  }
  std::string Feed(const char* name, const Tensor& value) {
    const std::string path = dir_.Path(std::string(name) + ".npy");
    EXPECT_TRUE(io::WriteNpy(path, value).ok());
    return Concat(" --feed ", name, "=", path);
  }
  const TempDir dir_;
};

// 40000 + 40000 is infinite in f16 and 79872 in bf16: 128 of 80000 away.
constexpr const char* kProduct =
    "graph @g(%x: f32[2,2]) {\n"
    "  %w = variable \"w\" {init=\"constant(1)\"} : f32[2,2]\n"
    "  amp() {dtype=f16, trim=false}\n"
    "  %y = matmul(%x, %w)\n"
    "  return %y\n"
    "}\n";
const Tensor kLarge = Tensor::Of(DType::kF32, {2, 2}, {40000, 40000, 1, 1});

TEST_F(HalftoneRunPrecision, ComparesTwo) {
  const std::string feed = Feed("x", kLarge);
  const Result f16 = Run(kProduct, "--compare f32,f16" + feed);
  EXPECT_EQ(f16.status, 3) << f16.err;
  EXPECT_EQ(f16.out,
            "value  op      type      other type  error\n"
            "%y     matmul  f32[2,2]  f16[2,2]      inf\n"
            "first value over 0.03 in the order of the step: %y (matmul), error inf\n");
  const Result bf16 = Run(kProduct, "--compare f32,bf16" + feed);
  EXPECT_EQ(bf16.status, 0) << bf16.err;
  EXPECT_EQ(bf16.out,
            "value  op      type      other type   error\n"
            "%y     matmul  f32[2,2]  bf16[2,2]   0.0016\n"
            "all 1 values are within 0.03\n");
}

TEST_F(HalftoneRunPrecision, MeasuresRanges) {
  const Result run = Run(kProduct, "--ranges --steps 2" + Feed("x", kLarge));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out,
            "value  op      largest  smallest not 0  overflow in f16  become 0  not finite\n"
            "%y     matmul    8e+04               2           50.0 %     0.0 %       0.0 %\n"
            "a policy that keeps f32 what leaves the range of f16:\n"
            "version: 1\n"
            "dtype: \"f16\"\n"
            "deny: \"y\"\n"
            "no_trim: true\n");
}

TEST_F(HalftoneRunPrecision, WritesThePolicyThatItProposes) {
  const std::string file = dir_.Path("policy.txt");
  for (const char* look : {"--ranges", "--bisect f16"}) {
    const Result run = Run(kProduct, Concat(look, " --write-policy ", file, Feed("x", kLarge)));
    EXPECT_EQ(run.status, 0) << run.err;
    const auto policy = amp::Policy::ReadFile(file);
    ASSERT_TRUE(policy.ok()) << policy.status();
    EXPECT_EQ(*policy, (amp::Policy{.dtype = DType::kF16, .deny = {"y"}, .trim = false})) << look;
  }
  EXPECT_EQ(Run(kProduct,
                "--ranges --write-policy " + file + Feed("x", Tensor::Full(DType::kF32, {2, 2}, 1)))
                .status,
            0);
  EXPECT_EQ(*amp::Policy::ReadFile(file), (amp::Policy{.dtype = DType::kF16, .trim = false}));
}

// The first product is beyond f16 and the second would cast it back; so would the reader of the
// input, through a reshape.
TEST_F(HalftoneRunPrecision, TheProposedPolicyGivesWhatF32Gives) {
  constexpr const char* kGraph =
      "graph @g(%x: f32[4], %s: f32[2,2]) {\n"
      "  %w = variable \"w\" {init=\"constant(1)\"} : f32[2,2]\n"
      "  amp() {dtype=f16, trim=false}\n"
      "  %r = reshape(%x) {shape=[2,2]}\n"
      "  %y = matmul(%r, %w)\n"
      "  %z = matmul(%y, %s)\n"
      "  return %z\n"
      "}\n";
  const std::string feed = Feed("x", Tensor::Full(DType::kF32, {4}, 1e5)) +
                           Feed("s", Tensor::Full(DType::kF32, {2, 2}, 1e-3)).replace(0, 8, ",");
  const std::string file = dir_.Path("policy.txt");
  for (const char* look : {"--ranges", "--bisect f16"}) {
    const Result run = Run(kGraph, Concat(look, " --write-policy ", file, feed));
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(amp::Policy::ReadFile(file)->deny, ::testing::IsSupersetOf({"y", "z"})) << look;
  }
}

// One suspect of 300: the first run measures, the others are trials.
TEST_F(HalftoneRunPrecision, BisectsAmongThoseThatLeaveTheRangeFirst) {
  std::string graph =
      "graph @g(%x: f32[1,1]) {\n"
      "  %w = variable \"w\" {init=\"constant(1)\"} : f32[1,1]\n"
      "  %large = variable \"large\" {init=\"constant(60000)\"} : f32[1,1]\n"
      "  %small = variable \"small\" {init=\"constant(1e-5)\"} : f32[1,1]\n"
      "  amp() {dtype=f16, trim=false}\n";
  std::string from = "%x";
  for (int i = 0; i < 298; ++i) {
    const std::string next = Concat("%a", i);
    if (i == 150) {
      graph += Concat("  %bad = mul(", from, ", %large)\n  %back = mul(%bad, %small)\n");
      from = "%back";
    }
    graph += Concat("  ", next, " = linear(", from, ", %w)\n");
    from = next;
  }
  graph += Concat("  return ", from, "\n}\n");
  const Result run = Run(graph, "--bisect f16" + Feed("x", Tensor::Full(DType::kF32, {1, 1}, 4)));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(
      run.out,
      "4 runs, 300 nodes in f16 (1 of them beyond its range): outputs are within 0.03 of those "
      "in f32 with this policy:\nversion: 1\ndtype: \"f16\"\ndeny: "
      "\"bad\"\nno_trim: true\n");
}

// 90,000 is infinite in f16; the second step has the gradient's fault.
TEST_F(HalftoneRunPrecision, NamesTheFirstNonFiniteNode) {
  constexpr const char* kGraph =
      "graph @g(%x: f32[2]) {\n"
      "  %w = variable \"w\" {init=\"constant(1)\"} : f32[2]\n"
      "  amp() {dtype=f16, trim=false, allow=[\"y\"]}\n"
      "  %y = mul(%w, %x)\n"
      "  %l = sum(%y) {axes=[]}\n"
      "  backward(%l) {scaler=\"s\"}\n"
      "  %n, %a = optimizer() {params=[\"w\"], rule=\"sgd\", lr=200, scaler=\"s\"}\n"
      "  scaler() {name=\"s\", init_scale=1}\n"
      "  return loss=%l\n"
      "}\n";
  const auto look = [&](double x) {
    return Run(kGraph, "--nonfinite --steps 3" + Feed("x", Tensor::Full(DType::kF32, {2}, x)));
  };
  const Result fine = look(0.5);
  EXPECT_EQ(fine.status, 0) << fine.err;
  EXPECT_EQ(fine.out, "3 steps: outputs, gradients and new values are finite\n");
  // w = 1, then 1 - 200 * 300: times 300 it is infinite in f16.
  const Result second = look(300);
  EXPECT_EQ(second.status, 3) << second.err;
  EXPECT_THAT(second.out,
              HasSubstr("step 1: %y (mul) f16[2]: 2 of 2 elements are not finite; f16: "));
  EXPECT_THAT(second.out, HasSubstr("magnitudes 60000 to 60000"));
  const Result input = look(std::numeric_limits<double>::infinity());
  EXPECT_EQ(input.status, 3);
  EXPECT_THAT(input.out, HasSubstr("step 0: input x f32[2]: 2 of 2 elements are not finite"));
}

// Of 300 nodes in f16 one rounds away what %d, in f32, would be: (1 + 2^-13) - 1.
TEST_F(HalftoneRunPrecision, BisectsToTheNodeAtFault) {
  std::string graph =
      "graph @g(%x: f32[1,1], %s: f32[1,1]) {\n"
      "  %w = variable \"w\" {init=\"constant(1)\"} : f32[1,1]\n"
      "  amp() {dtype=f16, trim=false, allow=[\"bad\"], deny=[\"d\"]}\n"
      "  %first = linear(%x, %w)\n";
  const auto chain = [&](const std::string& name, int count, std::string from) {
    for (int i = 0; i < count; ++i) {
      const std::string next = Concat("%", name, i);
      graph += Concat("  ", next, " = linear(", from, ", %w)\n");
      from = next;
    }
    return from;
  };
  const std::string before = chain("a", 149, "%first");
  graph += Concat("  %bad = add(", before, ", %s)\n  %d = sub(%bad, ", before, ")\n");
  graph += Concat("  return ", chain("b", 149, "%d"), "\n}\n");
  const std::string feed = Feed("x", Tensor::Of(DType::kF32, {1, 1}, {1})) + "," +
                           Feed("s", Tensor::Of(DType::kF32, {1, 1}, {std::ldexp(1.0, -13)}))
                               .substr(std::string(" --feed ").size());
  const Result run = Run(graph, "--bisect f16" + feed);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, ::testing::MatchesRegex(
                           "(9|10|11|12) runs, 300 nodes in f16: outputs are within 0.03 of those "
                           "in f32 with this policy:\nversion: 1\ndtype: \"f16\"\ndeny: \"d\"\n"
                           "deny: \"bad\"\nno_trim: true\n"));
}

TEST_F(HalftoneRunPrecision, AsksForOneLookAndWhatItTakes) {
  const auto err = [&](const std::string& options) {
    const Result run = Run(kProduct, options + Feed("x", kLarge));
    EXPECT_EQ(run.status, 2) << options;
    return run.err;
  };
  EXPECT_THAT(err("--compare f32"),
              HasSubstr("--compare=f32: expected reference, or two of f32, "));
  EXPECT_THAT(err("--compare f32,f64"), HasSubstr("expected reference, or two of f32, f16, bf16"));
  EXPECT_THAT(err("--bisect f32"), HasSubstr("--bisect=f32: expected f16 or bf16"));
  EXPECT_THAT(err("--bisect f16 --ranges"), HasSubstr("expected one of them"));
  EXPECT_THAT(err("--ranges --fetch y"), HasSubstr("expected no --fetch, --out or --profile"));
  EXPECT_THAT(err("--nonfinite --ranges"), HasSubstr("expected one of them"));
  EXPECT_THAT(err("--nonfinite --write-policy p"), HasSubstr("expected --bisect or --ranges"));
  EXPECT_THAT(err("--bisect f16 --save s.ckpt"), HasSubstr("end in several states"));
}

}  // namespace
}  // namespace halftone::testing
