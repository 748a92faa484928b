// text -> graph -> proto -> graph -> text over random graphs, and damaged texts and bytes.
#include "halftone/tests/support/random_graph.h"

#include <gtest/gtest.h>

#include <set>

#include "halftone/core/philox.h"
#include "halftone/graph/ir/proto.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/ir/verify.h"
#include "halftone/tests/ir/test_ops.h"

namespace halftone::ir {
namespace {

using testing::RandomGraph;

TEST(RandomGraph, RoundTripIsAFixedPoint) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto graph = RandomGraph(seed);
    for (const TextOptions& options : {TextOptions{}, TextOptions::Lossless()}) {
      const std::string text = Print(*graph, options);
      const auto parsed = Parse(text);
      ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
      const auto bytes = ToProtoBytes(**parsed);
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      const auto read = FromProtoBytes(*bytes);
      ASSERT_TRUE(read.ok()) << read.status();
      ASSERT_EQ(Print(**read, options), text);
      ASSERT_EQ((*read)->Hash(), graph->Hash());
      ASSERT_EQ(*ToProtoBytes(**read), *bytes);
    }
  }
}

TEST(RandomGraph, ProtoAloneKeepsWhatLosslessTextShows) {
  for (uint64_t seed = 1000; seed < 1100; ++seed) {
    const auto graph = RandomGraph(seed);
    const auto read = FromProtoBytes(*ToProtoBytes(*graph));
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(Print(**read, TextOptions::Lossless()), Print(*graph, TextOptions::Lossless()));
  }
}

TEST(RandomGraph, SortLeavesAValidOrderAlone) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto graph = RandomGraph(seed);
    const uint64_t hash = graph->Hash();
    ASSERT_TRUE(graph->Sort().ok());
    ASSERT_EQ(graph->Hash(), hash);
  }
}

TEST(RandomGraph, DifferentGraphsHaveDifferentHashes) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 0; seed < 300; ++seed) hashes.insert(RandomGraph(seed)->Hash());
  EXPECT_EQ(hashes.size(), 300u);
}

TEST(RandomGraph, CoversTheOpsItNames) {
  std::set<std::string> ops;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto graph = RandomGraph(seed);
    for (const auto& node : graph->nodes()) ops.insert(node->op().name);
  }
  for (const char* op : {"relu", "add", "mul", "where", "sum", "max", "matmul", "reshape",
                         "transpose", "slice", "concat", "softmax", "cast", "commit"}) {
    EXPECT_EQ(ops.count(op), 1u) << op;
  }
}

// What a damaged text may do is be refused, with a position, or be another valid graph.
void ExpectRefusedOrValid(const std::string& text) {
  const auto graph = Parse(text);
  if (graph.ok()) {
    ASSERT_TRUE(Verify(**graph).ok()) << text;
    const std::string printed = Print(**graph, TextOptions::Lossless());
    const auto again = Parse(printed);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
    ASSERT_EQ(Print(**again, TextOptions::Lossless()), printed);
    return;
  }
  ASSERT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << graph.status();
  ASSERT_EQ(Message(graph.status()).substr(0, 5), "line ") << graph.status();
}

std::string Damage(std::string text, PhiloxStream& rng) {
  static const char kTokens[][12] = {
      "%",  "{",  "}",  "(",  ")",    "[",          "]",      "=",    ",",    ":",
      "\"", "#",  "-",  "1",  "0",    "9999999999", "nan",    "f16",  "i64",  "bool",
      "@",  "\n", "//", "\\", "axes", "-1",         "return", "amp(", "1e400"};
  const int changes = 1 + static_cast<int>(rng.Below(3));
  for (int i = 0; i < changes && !text.empty(); ++i) {
    const size_t at = rng.Below(text.size());
    switch (rng.Below(5)) {
      case 0:
        text[at] = static_cast<char>(rng.Below(256));
        break;
      case 1:
        text.erase(at, 1 + rng.Below(8));
        break;
      case 2:
        text.insert(at, kTokens[rng.Below(std::size(kTokens))]);
        break;
      case 3:  // a piece from elsewhere
        text.insert(at, text.substr(rng.Below(text.size()), 1 + rng.Below(30)));
        break;
      default:
        text.replace(at, 1 + rng.Below(3), kTokens[rng.Below(std::size(kTokens))]);
    }
  }
  return text;
}

TEST(Robustness, DamagedTexts) {
  RegisterTestOps();
  PhiloxStream rng(1);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    testing::RandomGraphOptions options;
    options.steps = 10;
    const std::string text = Print(*RandomGraph(seed, options), TextOptions::Lossless());
    for (int i = 0; i < 200; ++i) ExpectRefusedOrValid(Damage(text, rng));
  }
}

TEST(Robustness, CutTexts) {
  const std::string text = Print(*RandomGraph(7), TextOptions::Lossless());
  for (size_t size = 0; size < text.size() - 2; ++size) {
    ASSERT_FALSE(Parse(text.substr(0, size)).ok()) << size;
  }
}

TEST(Robustness, RandomBytesAsText) {
  PhiloxStream rng(2);
  for (int i = 0; i < 2000; ++i) {
    std::string text = i % 2 == 0 ? "graph @g(" : "graph @g() {";
    const size_t size = rng.Below(60);
    for (size_t k = 0; k < size; ++k) text += static_cast<char>(rng.Below(256));
    ExpectRefusedOrValid(text);
  }
}

TEST(Robustness, DamagedProtos) {
  PhiloxStream rng(3);
  int accepted = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    testing::RandomGraphOptions options;
    options.steps = 10;
    const std::string bytes = *ToProtoBytes(*RandomGraph(seed, options));
    for (int i = 0; i < 300; ++i) {
      std::string damaged = bytes;
      const int changes = 1 + static_cast<int>(rng.Below(3));
      for (int c = 0; c < changes; ++c) {
        const size_t at = rng.Below(damaged.size());
        if (rng.Below(4) == 0) {
          damaged.erase(at, 1 + rng.Below(4));
        } else {
          damaged[at] = static_cast<char>(rng.Below(256));
        }
        if (damaged.empty()) break;
      }
      const auto graph = FromProtoBytes(damaged);
      if (graph.ok()) {
        ++accepted;
        ASSERT_TRUE(Verify(**graph).ok());
        ASSERT_TRUE(ToProtoBytes(**graph).ok());
      } else {
        const auto code = graph.status().code();
        ASSERT_TRUE(code == absl::StatusCode::kDataLoss ||
                    code == absl::StatusCode::kInvalidArgument)
            << graph.status();
      }
    }
  }
  EXPECT_GT(accepted, 100);  // changed constants, names, lines: the damage reached past the framing
}

}  // namespace
}  // namespace halftone::ir
