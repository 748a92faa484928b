// SIMD sources are compiled in batches (halftone_simd_batches of CMake). A constant in HWY_NAMESPACE that is
// called as one of the namespaces around it is found instead of that one, without a word, by the sources
// that come behind it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>
#include <vector>

#include "halftone/tests/meta/tree_rules.h"

namespace halftone::meta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The parts of a source that lie in HWY_NAMESPACE, and what lies outside of them.
struct Parts {
  std::string inside, outside;
};
Parts PartsOf(const std::string& text) {
  static constexpr char kBegin[] = "namespace HWY_NAMESPACE {",
                        kEnd[] = "}  // namespace HWY_NAMESPACE";
  Parts parts;
  size_t at = 0;
  while (true) {
    const size_t begin = text.find(kBegin, at);
    parts.outside += text.substr(at, begin - at);
    if (begin == std::string::npos) return parts;
    const size_t end = text.find(kEnd, begin);
    parts.inside += text.substr(begin, end - begin);
    if (end == std::string::npos) return parts;
    at = end;
  }
}

// The constants that are declared at the beginning of a line: those of namespaces.
std::vector<std::string> ConstantsOf(const std::string& text) {
  static const auto* const line = new std::regex("(^|\n)(inline )?constexpr [^;\n]*");
  static const auto* const name = new std::regex("\\b(k[A-Z]\\w*)(\\[\\w*\\])? =");
  std::vector<std::string> names;
  for (std::sregex_iterator l(text.begin(), text.end(), *line), end; l != end; ++l) {
    const std::string declared = l->str();
    for (std::sregex_iterator n(declared.begin(), declared.end(), *name); n != end; ++n) {
      names.push_back((*n)[1]);
    }
  }
  return names;
}

// "inside.h: kName is one of outside.h, too".
std::vector<std::string> Shadows(const std::vector<SourceFile>& files) {
  std::map<std::string, std::string> outside;  // where a constant is declared
  for (const SourceFile& file : files) {
    if (!file.path.ends_with(".h")) continue;
    for (const std::string& name : ConstantsOf(PartsOf(file.text).outside)) {
      outside.emplace(name, file.path);
    }
  }
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    for (const std::string& name : ConstantsOf(PartsOf(file.text).inside)) {
      const auto other = outside.find(name);
      if (other != outside.end()) {
        found.push_back(file.path + ": " + name + " is one of " + other->second + ", too");
      }
    }
  }
  return found;
}

TEST(SimdNames, AConstantOfATargetHidesNoOther) {
  std::vector<SourceFile> read;
  for (SourceFile& file : ReadTree(HALFTONE_SOURCE_DIR)) {
    const bool seen = file.path.starts_with("kernels/") || file.path.starts_with("core/") ||
                      file.path.starts_with("graph/");
    if (!seen || file.path.starts_with("kernels/cuda/")) continue;
    if (file.path.ends_with("-inl.h") && PartsOf(file.text).inside.empty()) continue;  // of others
    read.push_back(std::move(file));
  }
  EXPECT_THAT(Shadows(read), IsEmpty());
}

TEST(SimdNames, AreFoundInAPlantedFile) {
  const SourceFile header{"kernels/a.h", "\ninline constexpr int64_t kRows = 48, kColumns = 64;\n"};
  const std::string inside = "namespace HWY_NAMESPACE {\nconstexpr int64_t kVecs = 2, kRows = 6;\n";
  EXPECT_THAT(Shadows({header, {"kernels/b-inl.h", inside + "}  // namespace HWY_NAMESPACE\n"}}),
              ElementsAre("kernels/b-inl.h: kRows is one of kernels/a.h, too"));
  EXPECT_THAT(Shadows({header, {"kernels/b-inl.h", "constexpr int64_t kVecs = 2;\n"}}), IsEmpty());
}

}  // namespace
}  // namespace halftone::meta
