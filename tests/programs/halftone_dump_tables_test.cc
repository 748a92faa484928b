// The tables of halftone_dump, --memory and --cost, on graphs small enough to count by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// The text without line breaks and runs of blanks: JSON as one writes it by hand.
std::string Squeezed(const std::string& text) {
  std::string squeezed;
  for (char c : text) {
    if (c == '\n') c = ' ';
    if (c != ' ' || squeezed.empty() || squeezed.back() != ' ') squeezed += c;
  }
  return squeezed;
}

class HalftoneDumpTables : public ::testing::Test {
 protected:
  Result Dump(const std::string& graph, const std::string& options) {
    return Start("tools/halftone_dump", folder_.Write("graph.txt", graph) + " " + options);
  }
  const TempDir folder_;
};

// Every value has 16 * 16 * 4 = 1024 bytes. While %c is computed, %a, %b and %c are held: 3072.
// Then only %c is, which %d is written over (exp allows it); %e is the graph's output, outside the
// arena. No gaps are needed, so the arena has 3072 bytes too.
constexpr char kChain[] =
    "graph @chain(%x: f32[16,16]) {\n"
    "  %a = matmul(%x, %x)\n"
    "  %b = matmul(%a, %x)\n"
    "  %c = matmul(%a, %b) @\"deep/er\"\n"
    "  %d = exp(%c)\n"
    "  %e = matmul(%d, %d)\n"
    "  return %e\n"
    "}\n";

TEST_F(HalftoneDumpTables, MemoryFollowsThePlan) {
  const Result run = Dump(kChain, "--memory");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out,
            "memory of @chain, planned: an arena of 3.0 KiB\n"
            "outside the arena: inputs 1.0 KiB, constants 0 B, variables 0 B, outputs 1.0 KiB\n"
            "peak: 3.0 KiB at step 3, deep/er/c\n"
            "\n"
            "held at the peak  type          bytes   share  last reader\n"
            "%a                f32[16,16]  1.0 KiB  33.3 %  deep/er/c\n"
            "%b                f32[16,16]  1.0 KiB  33.3 %  deep/er/c\n"
            "%c                f32[16,16]  1.0 KiB  33.3 %  d\n"
            "\n"
            "step  node       op         adds    frees     live\n"
            "   1  a          matmul  1.0 KiB        -  1.0 KiB  ########\n"
            "   2  b          matmul  1.0 KiB        -  2.0 KiB  ################\n"
            "   3  deep/er/c  matmul  1.0 KiB  2.0 KiB  3.0 KiB  ######################## peak\n"
            "   4  d          exp           -        -  1.0 KiB  ########\n"
            "   5  e          matmul        -  1.0 KiB  1.0 KiB  ########\n");
}

TEST_F(HalftoneDumpTables, MemoryAsJson) {
  const Result run = Dump(kChain, "--memory --format=json");
  EXPECT_EQ(run.status, 0) << run.err;
  const std::string json = Squeezed(run.out);
  EXPECT_THAT(json, HasSubstr(R"("graph": "chain", "planned": true, "arena_bytes": 3072)"));
  EXPECT_THAT(json, HasSubstr(R"("peak": { "step": 2, "bytes": 3072, "held": [)"));
  EXPECT_THAT(json, HasSubstr(R"({ "value": "%c", "type": "f32[16,16]", "bytes": 1024, )"
                              R"("last_reader": "d" })"));
  EXPECT_THAT(json, HasSubstr(R"("outside": { "inputs": 1024, "constants": 0, "variables": 0, )"
                              R"("outputs": 1024 })"));
  EXPECT_THAT(json, HasSubstr(R"({ "node": "deep/er/c", "op": "matmul", "adds": 1024, )"
                              R"("frees": 2048, "live": 3072 })"));
}

// %a is not held while %c is computed from %b: two values at a time, without the repetition three.
TEST_F(HalftoneDumpTables, MemoryWithAndWithoutWhatIsComputedAgain) {
  const std::string graph =
      "graph @twice(%x: f32[16,16]) {\n"
      "  %a = matmul(%x, %x)\n"
      "  %b = matmul(%a, %a)\n"
      "  %c = matmul(%b, %b)\n"
      "  %a.again = matmul(%x, %x) pass(\"rematerialise\",\"a\")\n"
      "  %d = matmul(%c, %a.again)\n"
      "  return %d\n"
      "}\n";
  EXPECT_THAT(Dump(graph, "--memory").out,
              HasSubstr("peak: 2.0 KiB at step 2, b\n"
                        "1 node computes a value again for the backward pass; "
                        "without: an arena of 3.0 KiB, peak 3.0 KiB\n"));
  EXPECT_THAT(Squeezed(Dump(graph, "--memory --format=json").out),
              HasSubstr(R"("recomputed": { "nodes": 1, "arena_bytes_without": 3072, )"
                        R"("peak_bytes_without": 3072 })"));
}

// %w has 1 KiB: once in the order of linear, which two nodes read, and once in that of matmul.
TEST_F(HalftoneDumpTables, MemoryOfPackedWeights) {
  const std::string graph =
      "graph @packed(%x: f32[16,16]) {\n"
      "  %w = variable \"w\" : f32[16,16]\n"
      "  %a = linear(%x, %w) {packed=true}\n"
      "  %b = linear(%a, %w) {packed=true}\n"
      "  %c = matmul(%b, %w) {packed=true}\n"
      "  return %c\n"
      "}\n";
  EXPECT_THAT(Dump(graph, "--memory").out,
              HasSubstr("variables 1.0 KiB, packed weights 2.0 KiB, outputs 1.0 KiB\n"));
  EXPECT_THAT(Squeezed(Dump(graph, "--memory --format=json").out), HasSubstr(R"("packed": 2048)"));
}

// A marker: no plan. %d then has bytes of its own, beside those of %c.
TEST_F(HalftoneDumpTables, MemoryOfAGraphWithMarkersFollowsFromTheOrder) {
  std::string graph = kChain;
  graph.insert(graph.find("  return"), "  amp() {dtype=bf16}\n");
  const Result run = Dump(graph, "--memory");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out,
              HasSubstr("memory of @chain, by node order: a graph with markers has no plan\n"));
  EXPECT_THAT(run.out, HasSubstr("peak: 3.0 KiB at step 3, deep/er/c\n"));
  EXPECT_THAT(run.out, HasSubstr("4  d          exp     1.0 KiB  1.0 KiB  2.0 KiB"));
  EXPECT_THAT(Dump(graph, "--memory --format=json").out, HasSubstr("\"arena_bytes\": null"));
}

// Variables and constants are outside; what a reshape gives is the bytes of its operand, held until
// the reshape's last reader; a value that is committed is held to the end. %half (2 * 64 bytes) is
// read through %flat by %s; %w1 cannot be written into "w" at once, since %s reads the old value
// later.
TEST_F(HalftoneDumpTables, MemoryOfReshapesAndCommits) {
  const Result run = Dump(
      "graph @state(%x: f32[64]) {\n"
      "  %w = variable \"w\" : f32[64]\n"
      "  %c = constant {value=dense<f32[2]>(1, 2)}\n"
      "  %half = cast(%x) {to=bf16}\n"
      "  %flat = reshape(%half) {shape=[8, 8]}\n"
      "  %w1 = add(%w, %x)\n"
      "  %s = sum(%flat) {axes=[0, 1]}\n"
      "  %t = sum(%w) {axes=[0]}\n"
      "  %u = mul(%c, %t)\n"
      "  commit \"w\" = %w1\n"
      "  return %s, %u\n"
      "}\n",
      "--memory --format=json");
  EXPECT_EQ(run.status, 0) << run.err;
  const std::string json = Squeezed(run.out);
  // Outputs: %s in bf16, %u f32[2].
  EXPECT_THAT(json, HasSubstr(R"("outside": { "inputs": 256, "constants": 8, "variables": 256, )"
                              R"("outputs": 10 })"));
  EXPECT_THAT(json, HasSubstr(R"({ "node": "half", "op": "cast", "adds": 128, "frees": 0, )"
                              R"("live": 128 })"));
  EXPECT_THAT(json, Not(HasSubstr("\"node\": \"flat\"")));
  EXPECT_THAT(json, HasSubstr(R"({ "node": "w1", "op": "add", "adds": 256, "frees": 0, )"
                              R"("live": 384 })"));
  EXPECT_THAT(json, HasSubstr(R"({ "node": "s", "op": "sum", "adds": 0, "frees": 128, )"
                              R"("live": 384 })"));
  EXPECT_THAT(json, HasSubstr(R"({ "node": "t", "op": "sum", "adds": 4, "frees": 0, )"
                              R"("live": 260 })"));
  EXPECT_THAT(json, HasSubstr(R"({ "value": "%w1", "type": "f32[64]", "bytes": 256, )"
                              R"("last_reader": null })"));
}

TEST_F(HalftoneDumpTables, MemoryOfAGraphInWhichNothingRuns) {
  const Result run = Dump("graph @same(%x: f32[4]) {\n  return %x\n}\n", "--memory");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("nothing runs\n"));
}

// relu: one flop for each of 32 elements; read and written: 2 * 128 = 256 bytes.
// matmul: 2 * 8 * 4 * 2 = 128 flops; (32 + 8 + 16) * 4 = 224 bytes.
// reshape: nothing happens. cast: 16 flops, 64 + 32 = 96 bytes; the only node with 16-bit values.
// Together 176 flops and 576 bytes.
constexpr char kCost[] =
    "graph @cost(%x: f32[8,4]) {\n"
    "  %w = variable \"w\" : f32[4,2]\n"
    "  %r0 = relu(%x) @\"first\"\n"
    "  %h = matmul(%r0, %w)\n"
    "  %f = reshape(%h) {shape=[16]}\n"
    "  %y = cast(%f) {to=bf16}\n"
    "  return %y\n"
    "}\n";

TEST_F(HalftoneDumpTables, CostOfEachNodeTheLargestFirst) {
  const Result run = Dump(kCost, "--cost");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out,
            "node      op      flops   share  bytes   share\n"
            "h         matmul    128  72.7 %  224 B  38.9 %\n"
            "first/r0  relu       32  18.2 %  256 B  44.4 %\n"
            "y         cast       16   9.1 %   96 B  16.7 %\n"
            "total: 176 flops, 9.1 % of them in nodes with 16-bit values; 576 B read and "
            "written\n");
}

TEST_F(HalftoneDumpTables, CostAsJsonInNodeOrder) {
  const Result run = Dump(kCost, "--cost --format=json");
  EXPECT_EQ(run.status, 0) << run.err;
  const std::string json = Squeezed(run.out);
  EXPECT_THAT(json, HasSubstr(R"("flops": 176.0, "bytes": 576.0, "low_flops": 16.0)"));
  EXPECT_THAT(json, HasSubstr(R"({ "node": "first/r0", "op": "relu", "flops": 32.0, )"
                              R"("bytes": 256.0, )"));
  EXPECT_THAT(json, ContainsRegex("\"first/r0\".*\"h\".*\"y\""));
  EXPECT_THAT(json, HasSubstr(R"("low": true } ] })"));
}

// 2^30 * 2 multiplications and additions for each of 4 results: 8.59 G. 4.0 GiB of each operand.
TEST_F(HalftoneDumpTables, LargeNumbersGetUnits) {
  const Result run = Dump(
      "graph @big(%x: f32[2,1073741824], %y: f32[1073741824,2]) {\n"
      "  %z = matmul(%x, %y)\n"
      "  return %z\n"
      "}\n",
      "--cost");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("8.59 G  100.0 %  16.0 GiB  100.0 %"));
}

// Names from files, with an escape sequence that clears a terminal and a byte that is not UTF-8.
constexpr char kHostileNames[] =
    "graph @g(%x: f32[8,4], %v: f32[4,2]) {\n"
    "  %m = matmul(%x, %v) @\"a\\x1b[2J\\xff\"\n"
    "  %w = variable \"w\\x1b\" : f32[8,2]\n"
    "  %s = add(%m, %w)\n"
    "  amp() {dtype=bf16}\n"
    "  return %s\n"
    "}\n";

TEST_F(HalftoneDumpTables, F71NoNameReachesTheTerminal) {
  for (const char* form :
       {"--cost", "--memory", "--amp", "--format=dot", "--format=text", "--cost --format=json",
        "--memory --format=json", "--amp --format=json", "--format=json", "--format=html"}) {
    const Result run = Dump(kHostileNames, form);
    EXPECT_EQ(run.status, 0) << form << run.err;
    EXPECT_THAT(run.out, Not(HasSubstr("\x1b"))) << form;
    if (std::string(form).find("json") == std::string::npos) continue;
    EXPECT_THAT(run.out, Not(HasSubstr("\xff"))) << form << ": JSON is UTF-8";
  }
  EXPECT_THAT(Dump(kHostileNames, "--cost").out, HasSubstr("a\\x1b[2J"));
  EXPECT_THAT(Dump(kHostileNames, "--amp").out, HasSubstr("a\\x1b[2J"));
  const Result twice = Dump(
      "graph @g() {\n"
      "  %a = variable \"w\\x1b[2J\" : f32[]\n"
      "  %b = variable \"w\\x1b[2J\" : f32[]\n"
      "}\n",
      "");
  EXPECT_EQ(twice.status, 1);
  EXPECT_THAT(twice.err, Not(HasSubstr("\x1b")));
}

TEST_F(HalftoneDumpTables, RefusesWrongOptions) {
  const Result two = Dump(kCost, "--cost --memory");
  EXPECT_EQ(two.status, 2);
  EXPECT_THAT(two.err,
              HasSubstr("--memory and --cost: expected one of --amp, --memory, --cost, --fusion, "
                        "--diff"));
  for (const char* table : {"--amp", "--memory", "--cost", "--diff"}) {
    const Result dot = Dump(kCost, std::string(table) + " --format=dot");
    EXPECT_EQ(dot.status, 2);
    EXPECT_THAT(dot.err, HasSubstr(std::string(table) +
                                   ": a table has no --format=dot; expected text or json"));
  }
}

// A value of 64 * 64 numbers has 16 KiB in f32 and 8 KiB in bf16. The first two groups save writing
// and reading %a and %s again: 2 * 16 KiB, and 2 * 16 + 2 * 8 KiB.
TEST_F(HalftoneDumpTables, FusionNamesGroupsAndWhatStaysApart) {
  constexpr char kGroups[] =
      "graph @groups(%x: f32[64,64], %y: f32[64,64]) {\n"
      "  %a = add(%x, %y)\n"
      "  %b = relu(%a) @\"deep/er\"\n"
      "  %s = mul(%b, %y)\n"
      "  %t = cast(%s) {to=bf16}\n"
      "  %u = neg(%t)\n"
      "  return %b, %u\n"
      "}\n";
  const Result run = Dump(kGroups, "--fusion");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out,
            "fusion of @groups: 2 groups; 80.0 KiB a step are neither written nor read again\n"
            "\n"
            "   saved  result       one node\n"
            "32.0 KiB  f32[64,64]   a deep/er/b\n"
            "48.0 KiB  bf16[64,64]  s t u\n"
            "\n"
            "kept apart  read by  because it\n"
            "deep/er/b   u        is a result of the graph\n");
  const Result json = Dump(kGroups, "--fusion --format=json");
  EXPECT_THAT(
      Squeezed(json.out),
      HasSubstr(R"({ "nodes": [ "s", "t", "u" ], "type": "bf16[64,64]", "bytes_saved": 49152 })"));
  EXPECT_THAT(Squeezed(json.out), HasSubstr(R"("why": "is a result of the graph")"));
}

TEST_F(HalftoneDumpTables, FusionOfWhatFusesNothing) {
  const Result device = Dump(kChain, "--fusion --target=reference");
  EXPECT_EQ(device.status, 1);
  EXPECT_THAT(device.err, HasSubstr("--fusion: reference fuses nothing"));
  const Result asked = Dump("graph @g(%x: f32[2]) {\n  no_fusion()\n  return %x\n}\n", "--fusion");
  EXPECT_EQ(asked.status, 1);
  EXPECT_THAT(asked.err, HasSubstr("--fusion: graph @g asks for none, by `no_fusion`"));
}

}  // namespace
}  // namespace halftone::testing
