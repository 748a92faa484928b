#include "halftone/tests/meta/public_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace halftone::meta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Bad = std::vector<std::string>;

const char kRoot[] = HALFTONE_SOURCE_DIR;

std::vector<std::string> TheList() {
  std::ostringstream text;
  text << std::ifstream(std::string(kRoot) + "/cmake/public_headers.txt").rdbuf();
  return ListedHeaders(text.str());
}

TEST(PublicHeaders, TheTreeKeepsTheRules) {
  const std::vector<std::string> listed = TheList();
  const PublicHeaders set(listed.begin(), listed.end());
  const std::vector<SourceFile> files = ReadTree(kRoot);
  Bad bad = CheckList(listed, files);
  for (const SourceFile& file : files) {
    for (const Bad& found : {CheckPublicHeader(file, set), CheckForUsers(file, set)}) {
      bad.insert(bad.end(), found.begin(), found.end());
    }
  }
  EXPECT_THAT(bad, IsEmpty());
  EXPECT_EQ(set.count("halftone.h"), 1u);
}

TEST(ListedHeaders, LeavesCommentsOut) {
  EXPECT_THAT(ListedHeaders("# why\n\ncore/a.h\n# b\nb.h\n"), ElementsAre("core/a.h", "b.h"));
}

TEST(CheckList, SeesWhatIsNotThereAndWhatIsThereTwice) {
  EXPECT_THAT(CheckList({"core/a.h", "core/b.h", "core/a.h"}, {{"core/a.h", ""}}),
              ElementsAre("core/b.h:1: is listed, and is no file of the tree",
                          "core/a.h:1: is listed twice"));
}

Bad Header(const std::string& text) {
  return CheckPublicHeader({"core/a.h", text}, {"core/a.h", "core/b.h", "core/io/c.h"});
}

TEST(CheckPublicHeader, SeesIncludesOfInternalHeaders) {
  EXPECT_THAT(Header("#include \"halftone/core/b.h\"\n#include <vector>\n"), IsEmpty());
  EXPECT_THAT(Header("#include <vector>\n#include \"halftone/core/fork.h\"\n"),
              ElementsAre("core/a.h:2: a public header includes core/fork.h, which is none"));
  EXPECT_THAT(Header("#  include <halftone/core/x.def>\n"),
              ElementsAre("core/a.h:1: a public header includes core/x.def, which is none"));
}

TEST(CheckPublicHeader, SeesCommentsThatSendToInternalHeaders) {
  EXPECT_THAT(Header("int a;  // see b.h, core/b.h and io/c.h\n"), IsEmpty());
  EXPECT_THAT(Header("// see fork.h\n"),
              ElementsAre("core/a.h:1: a public header names fork.h, which is none"));
}

TEST(CheckPublicHeader, LeavesInternalHeadersAlone) {
  EXPECT_THAT(CheckPublicHeader({"core/x.h", "#include \"halftone/core/fork.h\"\n"}, {"core/a.h"}),
              IsEmpty());
}

Bad ForUsers(const std::string& path, const std::string& text) {
  return CheckForUsers({path, text}, {"core/a.h", "halftone.h"});
}

TEST(CheckForUsers, SeesInternalHeaders) {
  const std::string inside = "#include \"halftone/core/fork.h\"\n";
  for (const char* path : {"README.md", "docs/guide/a.md", "examples/a.cc", "examples/support/a.h",
                           "examples/outside/a.cc", "tests/install/a/b.cc"}) {
    EXPECT_THAT(ForUsers(path, inside),
                ElementsAre(std::string(path) + ":1: core/fork.h is no public header"));
    EXPECT_THAT(ForUsers(path, "#include \"halftone/core/a.h\"\n"), IsEmpty());
  }
  EXPECT_THAT(ForUsers("tools/a.cc", inside), IsEmpty());
}

TEST(CheckForUsers, LetsExamplesHaveHeadersOfTheirOwn) {
  const std::string own =
      "#include \"halftone/examples/support/a.h\"\n#include \"halftone/cli/exit_status.h\"\n";
  EXPECT_THAT(ForUsers("examples/a.cc", own), IsEmpty());
  EXPECT_EQ(ForUsers("examples/outside/a.cc", own).size(), 2u);
  EXPECT_EQ(ForUsers("README.md", own).size(), 2u);
}

TEST(CheckForUsers, SeesInternalNames) {
  EXPECT_THAT(ForUsers("docs/guide/a.md", "Call\n`nn::internal::Op`.\n"),
              ElementsAre("docs/guide/a.md:2: names a namespace `internal`, which is not for "
                          "users"));
}

}  // namespace
}  // namespace halftone::meta
