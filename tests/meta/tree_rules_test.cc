// The rules hold for the tree, and each rule sees a planted violation.
#include "halftone/tests/meta/tree_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace halftone::meta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Bad = std::vector<std::string>;

const std::vector<SourceFile>& Tree() {
  static const auto* const files = new std::vector<SourceFile>(ReadTree(HALFTONE_SOURCE_DIR));
  return *files;
}

template <typename Check>
Bad Everywhere(Check check) {
  Bad all;
  for (const SourceFile& file : Tree()) {
    for (std::string& line : check(file)) all.push_back(std::move(line));
  }
  return all;
}

Bad Includes(const std::string& path, const std::string& text) {
  return CheckIncludes({path, text});
}

TEST(Tree, IsReadFromTheSourceRoot) {
  std::vector<std::string> paths;
  for (const SourceFile& file : Tree()) paths.push_back(file.path);
  EXPECT_THAT(paths, ::testing::IsSupersetOf({"CMakeLists.txt", "tests/meta/tree_rules.cc"}));
  EXPECT_THAT(paths, ::testing::Not(::testing::Contains(::testing::StartsWith("build/"))));
}

TEST(Tree, IncludesPointDownTheLayers) { EXPECT_THAT(Everywhere(CheckIncludes), IsEmpty()); }

TEST(Tree, RegistersInFoldersNamedOps) { EXPECT_THAT(Everywhere(CheckRegistrations), IsEmpty()); }

TEST(Tree, HeadersAreIncludedOnce) { EXPECT_THAT(Everywhere(CheckPragmaOnce), IsEmpty()); }

TEST(Tree, FilesAreShort) { EXPECT_THAT(Everywhere(CheckLength), IsEmpty()); }

TEST(Tree, FoldersHaveReadmes) { EXPECT_THAT(CheckReadmes(Tree()), IsEmpty()); }

TEST(Tree, LinksLeadSomewhere) {
  const auto exists = [](const std::string& path) {
    return std::filesystem::exists(std::filesystem::path(HALFTONE_SOURCE_DIR) / path);
  };
  EXPECT_THAT(Everywhere([&](const SourceFile& file) { return CheckLinks(file, exists); }),
              IsEmpty());
}

TEST(LayerOf, LongestFolderWins) {
  EXPECT_EQ(LayerOf("kernels/registry.h"), "kernels");
  EXPECT_EQ(LayerOf("kernels/cpu/ops/copy.cc"), "kernels/cpu/ops");
  EXPECT_EQ(LayerOf("graph/ops/support/infer.h"), "graph/ops/support");
  EXPECT_EQ(LayerOf("passes/pass.h"), "passes");
  EXPECT_EQ(LayerOf("core/io/idx.h"), "core");
  EXPECT_EQ(LayerOf("corex/a.h"), "");
  EXPECT_EQ(LayerOf("halftone.h"), "");
}

TEST(CheckIncludes, AllowsDownwardAndOwnLayer) {
  EXPECT_THAT(Includes("passes/cse.cc",
                       "#include \"halftone/passes/cse.h\"\n"
                       "#include \"halftone/graph/ir/graph.h\"\n"
                       "#include \"absl/status/status.h\"\n#include <vector>\n"),
              IsEmpty());
  EXPECT_THAT(Includes("examples/a.cc", "#include \"halftone/halftone.h\"\n"), IsEmpty());
  EXPECT_THAT(Includes("tests/ops/a_test.cc", "#include \"halftone/tests/support/near.h\"\n"),
              IsEmpty());
}

TEST(CheckIncludes, SeesUpwardInclude) {
  EXPECT_THAT(Includes("core/a.h", "#pragma once\n#include \"halftone/graph/ir/graph.h\"\n"),
              ElementsAre("core/a.h:2: core must not include halftone/graph/ir/graph.h"));
  EXPECT_THAT(Includes("graph/ir/a.cc", "#  include \"halftone/graph/ops/a.h\"\n"),
              ElementsAre("graph/ir/a.cc:1: graph/ir must not include halftone/graph/ops/a.h"));
  EXPECT_THAT(Includes("core/a.cc", "#include \"halftone/halftone.h\"\n"),
              ElementsAre("core/a.cc:1: core must not include halftone/halftone.h"));
}

TEST(CheckIncludes, SeesSidewaysInclude) {
  EXPECT_THAT(Includes("passes/a.cc", "#include \"halftone/kernels/registry.h\"\n"),
              ElementsAre("passes/a.cc:1: passes must not include halftone/kernels/registry.h"));
  EXPECT_THAT(
      Includes("kernels/cpu/ops/a.cc", "#include \"halftone/kernels/reference/support/nn.h\"\n"),
      ElementsAre("kernels/cpu/ops/a.cc:1: kernels/cpu/ops must not include "
                  "halftone/kernels/reference/support/nn.h"));
}

// Where `from` lies, `header` of the tree is refused.
bool Refused(const std::string& from, const std::string& header) {
  const Bad bad = Includes(from, "#include \"halftone/" + header + "\"\n");
  return bad.size() == 1 &&
         bad[0].find(" must not include halftone/" + header) != std::string::npos;
}

TEST(CheckIncludes, SeesIncludeBetweenRooms) {
  EXPECT_TRUE(Refused("kernels/cuda/device/a.cuh", "kernels/cuda/ops/a.h"));
  EXPECT_TRUE(Refused("kernels/cuda/device/a.cc", "kernels/cuda/runtime/status.h"));
  EXPECT_TRUE(Refused("kernels/cuda/runtime/a.cc", "kernels/cuda/ops/a.h"));
  EXPECT_TRUE(Refused("kernels/cuda/cudnn/a.cc", "kernels/cuda/ops/a.h"));
  EXPECT_TRUE(Refused("kernels/cuda/cudnn/a.cc", "kernels/cuda/cublaslt/plan.h"));
  EXPECT_TRUE(Refused("kernels/cpu/simd/a.cc", "kernels/cpu/ops/a.h"));
  EXPECT_TRUE(Refused("kernels/cpu/simd/a.cc", "kernels/cpu/support/a.h"));
  EXPECT_TRUE(Refused("kernels/cpu/onednn/a.cc", "kernels/cpu/simd/convert.h"));
  EXPECT_TRUE(Refused("kernels/reference/support/a.h", "kernels/reference/ops/a.h"));
  EXPECT_TRUE(Refused("graph/ops/support/a.h", "graph/ops/a.h"));
  EXPECT_TRUE(Refused("passes/rewrite/a.cc", "passes/amp/policy.h"));
  EXPECT_TRUE(Refused("passes/amp/a.cc", "passes/autodiff/autodiff.h"));
  EXPECT_TRUE(Refused("passes/layout/a.cc", "passes/memory/memory_plan.h"));
  EXPECT_TRUE(Refused("passes/memory/a.cc", "passes/pipeline.h"));
  EXPECT_TRUE(Refused("graph/nn/a.cc", "kernels/cpu/simd/convert.h"));
}

TEST(CheckIncludes, AllowsRoomsBelow) {
  EXPECT_FALSE(Refused("kernels/cuda/ops/a.cc", "kernels/cuda/cudnn/plan.h"));
  EXPECT_FALSE(Refused("kernels/cuda/runtime/a.cu", "kernels/cuda/device/device.cuh"));
  EXPECT_FALSE(Refused("passes/autodiff/a.cc", "passes/amp/scaling.h"));
  EXPECT_FALSE(Refused("passes/rewrite/a.h", "passes/pass.h"));
  EXPECT_FALSE(Refused("passes/pipeline.cc", "passes/memory/memory_plan.h"));
  EXPECT_FALSE(Refused("graph/runtime/a.cc", "kernels/cpu/simd/convert.h"));
}

TEST(CheckIncludes, SeesTestsIncludedFromOutside) {
  EXPECT_THAT(Includes("tools/a.cc", "#include \"halftone/tests/support/near.h\"\n"),
              ElementsAre("tools/a.cc:1: halftone/tests/support/near.h is part of the tests"));
  const std::string emulated = "#include \"halftone/tests/cuda_emulation/device.h\"\n";
  EXPECT_THAT(Includes("kernels/cuda/device/device.cuh", emulated), IsEmpty());
  EXPECT_EQ(Includes("kernels/cuda/device/other.cuh", emulated).size(), 2u);
}

TEST(CheckIncludes, SeesLibraryInHeaderButNotInSource) {
  EXPECT_THAT(
      Includes("graph/ir/a.h", "#include <iostream>\n#include \"halftone/proto/graph.pb.h\"\n"),
      ElementsAre("graph/ir/a.h:1: iostream belongs in a source",
                  "graph/ir/a.h:2: halftone/proto/graph.pb.h belongs in a source"));
  EXPECT_THAT(Includes("kernels/a.h", "#include \"dnnl.h\"\n#include \"hwy/highway.h\"\n"),
              ElementsAre("kernels/a.h:1: dnnl.h belongs in a source",
                          "kernels/a.h:2: hwy/highway.h belongs in a source"));
  EXPECT_THAT(Includes("kernels/cpu/simd/a.h", "#include \"hwy/highway.h\"\n"), IsEmpty());
  EXPECT_THAT(Includes("graph/ir/a.cc", "#include \"halftone/proto/graph.pb.h\"\n"), IsEmpty());
}

TEST(CheckIncludes, SeesShortNames) {
  EXPECT_THAT(Includes("core/a.cc", "#include \"a.h\"\n"),
              ElementsAre("core/a.cc:1: a.h needs its full name, \"halftone/<folder>/...\""));
  EXPECT_THAT(Includes("examples/outside/a.cc", "#include \"a.h\"\n"), IsEmpty());
  EXPECT_THAT(Includes("core/io/a.cc", "#include \"../a.h\"\n"),
              ElementsAre("core/io/a.cc:1: ../a.h leaves its folder by '..'"));
}

TEST(CheckIncludes, IgnoresOtherFiles) {
  EXPECT_THAT(Includes("docs/a.md", "#include \"a.h\"\n"), IsEmpty());
}

TEST(CheckRegistrations, SeesOneOutsideOps) {
  const std::string code = "namespace a {\nvoid Register_cpu_b(KernelRegistry& r) {\n}\n}\n";
  EXPECT_THAT(CheckRegistrations({"kernels/cpu/simd/b.cc", code}),
              ElementsAre("kernels/cpu/simd/b.cc:2: registers, and nothing calls it: "
                          "the folder is not `ops`"));
  EXPECT_EQ(CheckRegistrations({"graph/ops/support/b.cc", code}).size(), 1u);
  EXPECT_THAT(CheckRegistrations({"kernels/cpu/ops/b.cc", code}), IsEmpty());
  EXPECT_THAT(CheckRegistrations({"kernels/cpu/simd/b.cc", "// void Register_cpu_b\n"}), IsEmpty());
}

TEST(CheckPragmaOnce, SeesMissingPragma) {
  EXPECT_THAT(CheckPragmaOnce({"core/a.h", "int A();\n"}),
              ElementsAre("core/a.h:1: no #pragma once"));
  EXPECT_THAT(CheckPragmaOnce({"core/a.h", "// why\n#pragma once\n"}), IsEmpty());
  EXPECT_THAT(CheckPragmaOnce({"core/a.cc", "int A();\n"}), IsEmpty());
}

TEST(CheckLength, SeesTheFirstLineTooMany) {
  std::string text;
  for (int i = 0; i < kMaxLines; ++i) text += "x\n";
  EXPECT_THAT(CheckLength({"core/a.cc", text}), IsEmpty());
  EXPECT_THAT(CheckLength({"core/a.cc", text + "x\n"}),
              ElementsAre("core/a.cc:601: over 600 lines"));
  EXPECT_THAT(CheckLength({"core/README.md", text}),
              ElementsAre("core/README.md:600: over 100 lines"));
  EXPECT_THAT(CheckLength({"README.md", text}), IsEmpty());
}

TEST(CheckReadmes, SeesFolderWithout) {
  const std::vector<SourceFile> files = {
      {"README.md", ""},    {"CMakeLists.txt", ""},  {"core/a.cc", ""},     {"core/README.md", ""},
      {"core/io/b.cc", ""}, {"tests/README.md", ""}, {"tests/io/c.cc", ""}, {"docs/d.md", ""}};
  EXPECT_THAT(CheckReadmes(files), ElementsAre("core/io:1: no README.md, and none above names it"));
}

TEST(CheckReadmes, AcceptsFolderNamedAbove) {
  EXPECT_THAT(CheckReadmes({{"tools/README.md", "`support/`: shared"}, {"tools/support/a.cc", ""}}),
              IsEmpty());
  EXPECT_THAT(CheckReadmes({{"README.md", "`tools/`"}, {"tools/support/a.cc", ""}}),
              ElementsAre("tools/support:1: no README.md, and none above names it"));
}

Bad Links(const std::string& path, const std::string& text) {
  return CheckLinks({path, text}, [](const std::string& target) {
    return target == "core/README.md" || target == "docs" || target == "docs/a.md";
  });
}

TEST(CheckLinks, SeesMissingFile) {
  EXPECT_THAT(Links("docs/a.md", "[b](b.md)\n\n[core](../core/README.md), [c](c.png#x).\n"),
              ElementsAre("docs/a.md:1: no file b.md", "docs/a.md:3: no file c.png"));
  EXPECT_THAT(Links("README.md", "![picture](docs/p.png)\n"),
              ElementsAre("README.md:1: no file docs/p.png"));
  EXPECT_THAT(Links("docs/a.md", "[out](../../x.md)\n"),
              ElementsAre("docs/a.md:1: ../../x.md leaves the tree"));
}

TEST(CheckLinks, AcceptsWhatExistsAndWhatIsNoLinkOfTheTree) {
  EXPECT_THAT(Links("docs/b.md", "[a](a.md), [a](a.md#part), [d](../docs), [up](#part)\n"),
              IsEmpty());
  EXPECT_THAT(Links("docs/b.md", "[web](https://example.com/x.md)\n"), IsEmpty());
  EXPECT_THAT(Links("docs/b.md", "`f[i](x)` and\n```cpp\nauto f = [](int x) { return x; };\n```\n"),
              IsEmpty());
  EXPECT_THAT(Links("docs/b.cc", "[b](b.md)\n"), IsEmpty());
}

TEST(CheckNames, SeesNamesWhereNoneMayBeAndNoneWhereTheyMay) {
  const std::vector<SourceFile> files = {
      {"a.cc", "glu"}, {"b.cc", "glu"}, {"c.cc", ""}, {"tests/d.cc", "glu"}};
  const NamesRule rule = {
      .applies = [](const std::string& path) { return path.rfind("tests/", 0) != 0; },
      .named_in =
          [](const SourceFile& file) {
            return file.text.empty() ? std::vector<std::string>{}
                                     : std::vector<std::string>{file.path + ":1: " + file.text};
          },
      .allowed = {{"b.cc", "why"}, {"c.cc", "why"}, {"tests/d.cc", "why"}}};
  EXPECT_THAT(CheckNames(files, rule),
              ElementsAre("a.cc:1: glu", "c.cc: is allowed names and has none",
                          "tests/d.cc: is allowed names and has none"));
}

}  // namespace
}  // namespace halftone::meta
