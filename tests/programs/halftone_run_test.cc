// halftone_run as a user starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "halftone/core/io/npy.h"
#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HalftoneRun : public ::testing::Test {
 protected:
  // Writes a graph and gives its path.
  std::string Graph(const std::string& text) { return dir_.Write("graph.txt", text); }
  // y = 2 x, s = sum of the elements of y.
  std::string Twice() {
    return Graph(
        "graph @twice(%x: f32[2,3]) {\n"
        "  %y = add(%x, %x)\n"
        "  %s = sum(%y) {axes=[0, 1]}\n"
        "  return %y, total=%s\n"
        "}\n");
  }
  std::string Npy(const std::string& name, const Tensor& value) {
    EXPECT_TRUE(io::WriteNpy(dir_.Path(name), value).ok());
    return dir_.Path(name);
  }
  Result Run(const std::string& arguments) { return Start("tools/halftone_run", arguments); }
  // Of a run that succeeds.
  std::string Output(const std::string& arguments) {
    const Result run = Run(arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  }
  // The message of a run that fails with `status`.
  std::string Error(int status, const std::string& arguments) {
    const Result run = Run(arguments);
    EXPECT_EQ(run.status, status) << arguments << "\n" << run.output;
    EXPECT_EQ(run.out, "") << arguments;
    EXPECT_THAT(run.err, StartsWith("halftone_run: "));
    return run.err.substr(14);
  }
  const TempDir dir_;
};

TEST_F(HalftoneRun, PrintsTheOutputsOnFiles) {
  const std::string x = Npy("x.npy", Tensor::Of(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6.25}));
  for (const char* device : {"cpu", "reference"}) {
    EXPECT_EQ(Output(Twice() + " --feed x=" + x + " --device=" + device),
              "y f32[2,3] =\n"
              "[[2, 4, 6],\n"
              " [8, 10, 12.5]]\n"
              "total f32[] = 42.5\n");
  }
}

TEST_F(HalftoneRun, GeneratesFeeds) {
  const std::string graph = Graph(
      "graph @feeds(%a \"first\": f32[4], %b: i64[5], %c: u8[2], %d: bool[3]) {\n"
      "  return %a, %b, %c, %d\n"
      "}\n");
  EXPECT_EQ(Output(graph + " --feed first=arange,b=arange:3,c=zeros,d=ones"),
            "a f32[4] = [0, 1, 2, 3]\n"
            "b i64[5] = [0, 1, 2, 0, 1]\n"
            "c u8[2] = [0, 0]\n"
            "d bool[3] = [true, true, true]\n");
  // An input is known by its node, too.
  EXPECT_THAT(Output(graph + " --feed a=ones,b=zeros,c=ones,d=arange"),
              HasSubstr("d bool[3] = [false, true, true]\n"));
}

TEST_F(HalftoneRun, NormalFeedsFollowTheirSeed) {
  const std::string graph = Graph(
      "graph @n(%x: f32[10000]) {\n"
      "  %m = mean(%x) {axes=[0]}\n"
      "  %q = mul(%x, %x)\n"
      "  %v = mean(%q) {axes=[0]}\n"
      "  return %m, %v\n"
      "}\n");
  const auto moments = [&](const std::string& seed) {
    const Result run = Run(graph + " --feed x=normal:" + seed + " --out " + dir_.Path(seed));
    EXPECT_EQ(run.status, 0) << run.err;
    const auto mean = io::ReadNpy(dir_.Path(seed + "/m.npy"));
    const auto square = io::ReadNpy(dir_.Path(seed + "/v.npy"));
    EXPECT_TRUE(mean.ok() && square.ok());
    // Deviation of a mean of 10,000: 0.01, and sqrt(2) times that for the squares.
    EXPECT_LT(std::fabs(mean->item()), 0.05);
    EXPECT_LT(std::fabs(square->item() - 1), 0.07);
    return mean->item();
  };
  const double first = moments("1");
  EXPECT_EQ(moments("1"), first);
  EXPECT_NE(moments("2"), first);
}

TEST_F(HalftoneRun, FetchesWhatIsAskedFor) {
  const std::string pool = Graph(
      "graph @f(%x: f32[1,1,1,4]) {\n"
      "  %w = variable \"fc.weight\" {init=\"constant(2)\"} : f32[4]\n"
      "  %h = mul(%x, %w)\n"
      "  %m, %i = max_pool2d(%h) {kernel=[1, 2], stride=[1, 2]}\n"
      "  return h=%x, %m\n"
      "}\n");
  const std::string feed = " --feed x=arange";
  EXPECT_EQ(Output(pool + feed + " --fetch m,h,%h,m#1,fc.weight"),
            "m f32[1,1,1,2] =\n[[[[2, 6]]]]\n"
            "h f32[1,1,1,4] =\n[[[[0, 1, 2, 3]]]]\n"
            "%h f32[1,1,1,4] =\n[[[[0, 2, 4, 6]]]]\n"
            "m#1 u8[1,1,1,2] =\n[[[[1, 1]]]]\n"  // positions in the window
            "fc.weight f32[4] = [2, 2, 2, 2]\n");
}

TEST_F(HalftoneRun, KeepsAFetchedValueThatPassesDoAwayWith) {
  const std::string graph = Graph(
      "graph @f(%x: f32[2]) {\n"
      "  %unread = exp(%x)\n"
      "  %y = add(%x, %x)\n"
      "  return %y\n"
      "}\n");
  const Result run = Run(graph + " --feed x=zeros --fetch unread");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, "unread f32[2] = [1, 1]\n");
  EXPECT_EQ(run.err, "note: unread does not outlive the passes; kept as an output of the graph\n");
}

// Channels-last inside; shown in the order of the logical shape.
TEST_F(HalftoneRun, ShowsPlainLayout) {
  const std::string graph = Graph(
      "graph @conv(%x: f32[1,2,1,3]) {\n"
      "  %w = constant {value=dense<f32[2,2,1,1]>(1, 0, 0, 10)} : f32[2,2,1,1]\n"
      "  %y = conv2d(%x, %w)\n"
      "  %z = relu(%y)\n"
      "  %l = conv2d(%z, %w)\n"
      "  return %l\n"
      "}\n");
  EXPECT_EQ(Output(graph + " --feed x=arange --fetch y"),
            "y f32[1,2,1,3] =\n[[[[0, 1, 2]],\n  [[30, 40, 50]]]]\n");
}

TEST_F(HalftoneRun, ShortensLargeValues) {
  const std::string graph = Graph("graph @big(%x: i32[40,50]) {\n  return %x\n}\n");
  EXPECT_EQ(Output(graph + " --feed x=arange"),
            "x i32[40,50] =\n"
            "[[0, 1, 2, ..., 47, 48, 49],\n"
            " [50, 51, 52, ..., 97, 98, 99],\n"
            " [100, 101, 102, ..., 147, 148, 149],\n"
            " ...,\n"
            " [1850, 1851, 1852, ..., 1897, 1898, 1899],\n"
            " [1900, 1901, 1902, ..., 1947, 1948, 1949],\n"
            " [1950, 1951, 1952, ..., 1997, 1998, 1999]]\n");
}

TEST_F(HalftoneRun, WritesFiles) {
  const std::string out = dir_.Path("new/out");
  EXPECT_EQ(Output(Twice() + " --feed x=ones --fetch y,total,%y --out " + out),
            "y f32[2,3] -> " + out + "/y.npy\ntotal f32[] -> " + out +
                "/total.npy\n%y f32[2,3] -> " + out + "/_y.npy\n");
  const auto y = io::ReadNpy(out + "/y.npy");
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_TRUE(BitEqual(*y, Tensor::Full(DType::kF32, {2, 3}, 2)));
  EXPECT_EQ(io::ReadNpy(out + "/total.npy")->item(), 12);
}

// loss = x w, so w falls by lr x = 0.5 a step; the loss of step k is 8 - k / 2.
constexpr char kTraining[] =
    "graph @train(%x: f32[1]) {\n"
    "  %w = variable \"w\" {init=\"constant(8)\"} : f32[1]\n"
    "  %l = mul(%x, %w)\n"
    "  backward(%l)\n"
    "  %n, %a = optimizer() {lr=0.5, params=[\"w\"], rule=\"sgd\"}\n"
    "  return loss=%l\n"
    "}\n";

TEST_F(HalftoneRun, TrainsAStepThatIsNotDifferentiatedYet) {
  EXPECT_EQ(Output(Graph(kTraining) + " --feed x=ones --steps 3"),
            "step 0: loss = 8\nstep 1: loss = 7.5\nstep 2: loss = 7\nloss f32[1] = [7]\n");
}

TEST_F(HalftoneRun, CarriesVariablesInCheckpoints) {
  const std::string run = Graph(kTraining) + " --feed x=ones --variables ";
  const std::string file = dir_.Path("state.ckpt");
  Output(dir_.Path("graph.txt") + " --feed x=ones --steps 2 --save " + file);
  EXPECT_EQ(Output(run + file), "loss f32[1] = [7]\n");
  // Another graph has use for less, another still needs more.
  const Result less = Run(Graph("graph @w() {\n  %w = variable \"w\" : f32[1]\n  return %w\n}\n") +
                          " --variables " + file);
  EXPECT_EQ(less.out, "w f32[1] = [7]\n");
  EXPECT_EQ(less.err,
            "note: " + file +
                " has 2 variables (optimizer0.applied_steps, optimizer0.lr) that the graph "
                "does not use\n");
  const Result more = Run(Graph("graph @w() {\n  %w = variable \"w\" : f32[1]\n"
                                "  %v = variable \"v\" {init=\"constant(3)\"} : f32[1]\n"
                                "  %s = add(%w, %v)\n  return %s\n}\n") +
                          " --variables " + file);
  EXPECT_EQ(more.out, "s f32[1] = [10]\n");
  EXPECT_THAT(more.err, HasSubstr("lacks 1 variable (v): initialised by --seed"));
  EXPECT_EQ(Error(1, Graph("graph @w() {\n  %w = variable \"w\" : f32[2]\n  return %w\n}\n") +
                         " --variables " + file),
            file + ": variable \"w\": got f32[1], expected f32[2]\n");
  Graph(kTraining);
  EXPECT_THAT(Error(1, run + dir_.Path("absent.ckpt")), HasSubstr("absent.ckpt"));
  EXPECT_THAT(Error(1, run + dir_.Path("graph.txt")), HasSubstr("graph.txt"));
}

TEST_F(HalftoneRun, SeedsVariables) {
  const std::string graph = Graph(
      "graph @v() {\n"
      "  %w = variable \"w\" {init=\"normal(0,1)\"} : f32[]\n"
      "  return %w\n"
      "}\n");
  EXPECT_EQ(Output(graph + " --seed 3"), Output(graph + " --seed=3"));
  EXPECT_NE(Output(graph + " --seed 3"), Output(graph + " --seed 4"));
}

TEST_F(HalftoneRun, RefusesWrongOptions) {
  const std::string graph = Twice();
  const std::string ok = graph + " --feed x=ones";
  const std::string sources = "FILE.npy, zeros, ones, arange, arange:N or normal:SEED\n";
  EXPECT_EQ(Error(2, ""),
            "expected one FILE or folder; halftone_run FILE --feed x=x.npy --fetch y\n");
  EXPECT_EQ(Error(2, ok + " --device=abacus"),
            "--device=abacus: expected cpu, reference, cuda or cuda:N\n");
  EXPECT_EQ(Error(2, ok + " --steps 0"), "--steps: expected 1 or more\n");
  EXPECT_EQ(Error(2, ok + " --threads=-1"), "--threads: got -1, expected 0..1024\n");
  EXPECT_EQ(Error(2, ok + " --tolerance=nan"), "--tolerance: expected 0 or more\n");
  EXPECT_EQ(Error(2, ok + " --compare=cuda"),
            "--compare=cuda: expected reference, or two of f32, f16, bf16\n");
  EXPECT_EQ(Error(2, ok + " --compare=reference --device=reference"),
            "--compare=reference: expected --device=cpu or cuda\n");
  EXPECT_EQ(
      Error(2, ok + " --compare=reference --out=" + dir_.path()),
      "--compare, --bisect, --ranges, --nonfinite: show tables; expected no --fetch, --out or --profile\n");
  EXPECT_EQ(Error(2, graph + " --feed x"), "--feed x: expected INPUT=" + sources);
  for (const char* source :
       {"x=", "x=random", "x=normal", "x=arange:0", "x=normal:-1", "x=ones:2"}) {
    EXPECT_EQ(Error(2, graph + " --feed " + source),
              "--feed " + std::string(source) + ": expected " + sources);
  }
  EXPECT_EQ(Error(2, ok + ",x=zeros"), "--feed x: given twice\n");
  EXPECT_EQ(Error(2, ok + " --feed=y=zeros"),
            "--feed: given 2 times; expected one list, --feed=a,b\n");
  EXPECT_EQ(Error(2, ok + " --fetch=y --fetch y -fetch=y"),
            "--fetch: given 3 times; expected one list, --fetch=a,b\n");
}

TEST_F(HalftoneRun, RefusesFeedsAndFetchesThatDoNotFit) {
  const std::string graph = Twice();
  EXPECT_EQ(Error(2, graph),
            "input x f32[2,3] has no feed; expected --feed x=FILE.npy, zeros, ones, arange, "
            "arange:N or normal:SEED\n");
  EXPECT_EQ(Error(2, graph + " --feed x=ones,z=ones"),
            "--feed z: the graph has no such input; expected x\n");
  const std::string wide = Npy("wide.npy", Tensor::Zeros(DType::kF64, {2, 3}));
  EXPECT_EQ(Error(2, graph + " --feed x=" + wide),
            "--feed x: " + wide + " is f64[2,3]; expected f32[2,3]\n");
  const std::string flat = Npy("flat.npy", Tensor::Zeros(DType::kF32, {6}));
  EXPECT_EQ(Error(2, graph + " --feed x=" + flat),
            "--feed x: " + flat + " is f32[6]; expected f32[2,3]\n");
  for (const char* name : {"z", "y#1", "y#-1", "%total", "y#", "%"}) {
    EXPECT_EQ(Error(2, graph + " --feed x=ones --fetch '" + name + "'"),
              "--fetch: the graph has no output, node or variable \"" + std::string(name) + "\"\n");
  }
  const std::string none = Graph("graph @none(%i: i64[2]) {\n  return %i\n}\n");
  EXPECT_EQ(Error(2, none + " --feed i=normal:1"),
            "--feed i: normal has no values for i64[2]; expected a float input\n");
  EXPECT_EQ(Error(2, Graph("graph @none() {\n}\n") + " --feed x=ones"),
            "--feed x: the graph has no such input; it has none\n");
}

TEST_F(HalftoneRun, ReportsFilesThatFail) {
  const std::string feed = " --feed x=ones";
  EXPECT_EQ(Error(1, dir_.Path("absent.txt") + feed),
            dir_.Path("absent.txt") + ": no such file or directory\n");
  EXPECT_THAT(Error(1, Graph("graph @broken(") + feed), HasSubstr("line 1, column "));
  const std::string graph = Twice();
  EXPECT_EQ(Error(1, graph + " --feed x=" + dir_.Path("absent.npy")),
            dir_.Path("absent.npy") + ": no such file or directory\n");
  dir_.Write("text.npy", "hello");
  EXPECT_EQ(Error(1, graph + " --feed x=" + dir_.Path("text.npy")),
            dir_.Path("text.npy") + ": not an npy file: expected \\x93NUMPY at its start\n");
  EXPECT_THAT(Error(1, graph + feed + " --out " + dir_.Path("text.npy/out")),
              HasSubstr("text.npy/out: cannot create: "));
}

TEST_F(HalftoneRun, ReportsAStepThatFails) {
  const std::string graph = Graph(
      "graph @pick(%x: f32[2,3], %t: i64[2]) {\n"
      "  %l, %s = cross_entropy(%x, %t)\n"
      "  return %l\n"
      "}\n");
  EXPECT_EQ(
      Error(1, graph + " --feed x=zeros,t=" + Npy("t.npy", Tensor::Of(DType::kI64, {2}, {0, 3}))),
      "cross_entropy(%l): index 3 at [1] out of range; expected 0..2\n");
}

}  // namespace
}  // namespace halftone::testing
