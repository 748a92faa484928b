#include "halftone/passes/pass_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/text.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/passes/pipeline.h"

namespace halftone::passes {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FunctionPass : public Pass {
 public:
  using Body = std::function<absl::StatusOr<bool>(ir::Graph&, PassContext&)>;
  FunctionPass(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  const char* name() const override { return name_.c_str(); }
  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    return body_(graph, context);
  }

 private:
  const std::string name_;
  const Body body_;
};

std::unique_ptr<Pass> Make(std::string name, FunctionPass::Body body) {
  return std::make_unique<FunctionPass>(std::move(name), std::move(body));
}

// Puts a relu before output 0.
void AddRelu(ir::Graph& graph) {
  ir::Builder b(&graph);
  ir::Value& output = graph.outputs()[0].value;
  output = b.Op("relu", {b.Wrap(output)}).value();
}

std::unique_ptr<Pass> Relu(std::string name = "add-relu") {
  return Make(std::move(name), [](ir::Graph& graph, PassContext& context) {
    AddRelu(graph);
    ++context.stats["relus"];
    return true;
  });
}

std::unique_ptr<Pass> Idle(std::string name = "idle") {
  return Make(std::move(name), [](ir::Graph&, PassContext&) { return false; });
}

class PassManagerTest : public ::testing::Test {
 protected:
  PassManagerTest() {
    graph_ = *ir::Parse("graph @g(%x: f32[2]) {\n  return %x\n}\n");
    context_.target = *kernels::FindFixedTarget("cpu-avx2");
    options_.check_changed = true;
    dir_ = fs::temp_directory_path() / ("halftone_pass_manager_" + std::to_string(getpid()));
  }
  ~PassManagerTest() override { fs::remove_all(dir_); }

  absl::Status RunOne(std::unique_ptr<Pass> pass) {
    PassManager manager(options_);
    manager.Add(std::move(pass));
    return manager.Run(*graph_, context_);
  }

  static std::vector<std::string> Names(const PassManager& manager) {
    std::vector<std::string> names;
    for (const PassRun& run : manager.runs()) names.push_back(run.pass);
    return names;
  }

  std::unique_ptr<ir::Graph> graph_;
  PassContext context_;
  PassManagerOptions options_;
  fs::path dir_;
};

TEST_F(PassManagerTest, RunsInOrderAndKeepsALog) {
  PassManager manager(options_);
  manager.Add(Relu("first"));
  manager.Add(Idle("second"));
  manager.Add(Relu("third"));
  ASSERT_TRUE(manager.Run(*graph_, context_).ok());
  EXPECT_THAT(Names(manager), ElementsAre("first", "second", "third"));
  EXPECT_TRUE(manager.runs()[0].changed);
  EXPECT_FALSE(manager.runs()[1].changed);
  EXPECT_EQ(manager.runs()[0].stats.at("relus"), 1);
  EXPECT_TRUE(manager.runs()[1].stats.empty());
  EXPECT_GE(manager.runs()[0].seconds, 0);
  EXPECT_THAT(manager.Summary(), HasSubstr("relus=1"));
  // A second run starts the log anew.
  ASSERT_TRUE(manager.Run(*graph_, context_).ok());
  EXPECT_EQ(manager.runs().size(), 3u);
}

TEST_F(PassManagerTest, GroupRunsToAFixedPoint) {
  int left = 2;
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(Make("twice", [&left](ir::Graph& graph, PassContext&) {
    if (left == 0) return false;
    --left;
    AddRelu(graph);
    return true;
  }));
  passes.push_back(Idle());
  PassManager manager(options_);
  manager.AddGroup("group", std::move(passes));
  ASSERT_TRUE(manager.Run(*graph_, context_).ok());
  EXPECT_THAT(Names(manager), ElementsAre("twice", "idle", "twice", "idle", "twice", "idle"));
  EXPECT_EQ(manager.runs().back().round, 2);
}

TEST_F(PassManagerTest, GroupThatNeverEndsIsAnError) {
  std::vector<std::unique_ptr<Pass>> passes;
  passes.push_back(Relu());
  PassManager manager(options_);
  manager.AddGroup("restless", std::move(passes), 3);
  const absl::Status status = manager.Run(*graph_, context_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Message(status), "group restless still changes the graph after 3 rounds");
}

TEST_F(PassManagerTest, NamesThePassThatBreaksTheGraph) {
  const absl::Status status = RunOne(Make("vandal", [](ir::Graph& graph, PassContext&) {
    AddRelu(graph);
    graph.nodes().back()->mutable_output_types()[0].dtype = DType::kF16;
    return true;
  }));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Message(status), HasSubstr("pass vandal: relu(%relu): output 0 is f16[2]"));
}

TEST_F(PassManagerTest, VerifiesTheGraphItIsGiven) {
  AddRelu(*graph_);
  graph_->nodes().back()->mutable_output_types()[0].dtype = DType::kF16;
  const absl::Status status = RunOne(Idle());
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Message(status), HasSubstr("graph before the first pass: relu(%relu)"));
}

TEST_F(PassManagerTest, NamesThePassThatHidesAChange) {
  const absl::Status status = RunOne(Make("liar", [](ir::Graph& graph, PassContext&) {
    AddRelu(graph);
    return false;
  }));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Message(status), "pass liar: answered that it left the graph alone, but changed it");
}

TEST_F(PassManagerTest, NamesThePassThatMakesUpAChange) {
  const absl::Status status =
      RunOne(Make("boaster", [](ir::Graph&, PassContext&) { return true; }));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Message(status), "pass boaster: answered that it changed the graph, but did not");
}

TEST_F(PassManagerTest, KeepsTheCodeOfAnErrorOfAPass) {
  const absl::Status status = RunOne(Make("picky", [](ir::Graph&, PassContext&) {
    return absl::StatusOr<bool>(InvalidArgument("no loss"));
  }));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), "pass picky: no loss");
}

TEST_F(PassManagerTest, SortsAfterEachChange) {
  ASSERT_TRUE(RunOne(Make("insert-before", [](ir::Graph& graph, PassContext&) {
                AddRelu(graph);
                AddRelu(graph);
                ir::Builder b(&graph);
                const ir::Value x = graph.inputs()[0]->output();
                const ir::Value negated = b.Op("neg", {b.Wrap(x)}).value();
                graph.ReplaceUses(x, negated, negated.node);
                return true;
              })).ok());
  EXPECT_EQ(graph_->nodes()[1]->op().name, "neg");
}

TEST_F(PassManagerTest, FilterSelectsAndLeavesOut) {
  for (const auto& [filter, expected] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{{"", {"a", "b", "c"}},
                                                                     {"b", {"b"}},
                                                                     {"c,a", {"a", "c"}},
                                                                     {"-b", {"a", "c"}},
                                                                     {"-a,-c", {"b"}}}) {
    options_.filter = filter;
    PassManager manager(options_);
    for (const char* name : {"a", "b", "c"}) manager.Add(Idle(name));
    ASSERT_TRUE(manager.Run(*graph_, context_).ok()) << filter;
    EXPECT_EQ(Names(manager), expected) << filter;
  }
}

TEST_F(PassManagerTest, FilterThatMatchesNothingIsAnError) {
  options_.filter = "idel";
  const absl::Status unknown = RunOne(Idle());
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(unknown), "pass filter: no pass is named \"idel\"");
  options_.filter = "idle,-idle";
  const absl::Status mixed = RunOne(Idle());
  EXPECT_EQ(mixed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(mixed),
            "pass filter \"idle,-idle\" mixes names to run with names to leave out");
}

TEST_F(PassManagerTest, StopsAfterTheLastGroupWithThePass) {
  for (const auto& [stop, expected] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"", {"a", "b", "c", "a", "d"}}, {"a", {"a", "b", "c", "a"}}, {"b", {"a", "b", "c"}}}) {
    options_.stop_after = stop;
    PassManager manager(options_);
    manager.Add(Idle("a"));
    std::vector<std::unique_ptr<Pass>> group;  // stays whole: "b" runs until it has settled
    group.push_back(Idle("b"));
    group.push_back(Idle("c"));
    manager.AddGroup("both", std::move(group));
    manager.Add(Idle("a"));
    manager.Add(Idle("d"));
    ASSERT_TRUE(manager.Run(*graph_, context_).ok()) << stop;
    EXPECT_EQ(Names(manager), expected) << stop;
  }
  options_.stop_after = "both";  // a group is no pass
  const absl::Status unknown = RunOne(Idle());
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(unknown), "stop after: no pass is named \"both\"");
}

TEST_F(PassManagerTest, DumpsTheInputAndEveryChange) {
  options_.dump_dir = (dir_ / "new").string();
  PassManager manager(options_);
  manager.Add(Idle());
  manager.Add(Relu());
  manager.Add(Relu("again"));
  ASSERT_TRUE(manager.Run(*graph_, context_).ok());
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(options_.dump_dir)) {
    files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  EXPECT_THAT(files, ElementsAre("00_input.txt", "01_add-relu.txt", "02_again.txt"));
  std::stringstream last;
  last << std::ifstream(fs::path(options_.dump_dir) / "02_again.txt").rdbuf();
  const auto parsed = ir::Parse(last.str());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ((*parsed)->Hash(), graph_->Hash());
}

TEST_F(PassManagerTest, DumpsKeepDecisionsAndLocations) {
  ir::Node& node = *graph_->nodes()[0];
  node.amp = {true, ir::AmpClass::kClear, DType::kF32, "fp32: by hand"};
  node.location = {"model.cc", 42};
  options_.dump_dir = dir_.string();
  ASSERT_TRUE(RunOne(Idle()).ok());
  std::stringstream text;
  text << std::ifstream(dir_ / "00_input.txt").rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("amp(clear,f32,\"fp32: by hand\")"));
  EXPECT_THAT(text.str(), HasSubstr("loc(\"model.cc\":42)"));
}

TEST_F(PassManagerTest, DumpsOfAnEarlierRunGo) {
  std::filesystem::create_directories(dir_);
  for (const char* name : {"07_simplify.txt", "100_autodiff.txt"}) {
    std::ofstream(dir_ / name) << "graph @old() {\n}\n";
  }
  const std::set<std::string> kept = {"2024_results.txt", "notes.txt", "7_x.txt",
                                      "007_x.txt",        "07_.txt",   "07_x.png"};
  for (const std::string& name : kept) {
    std::ofstream(dir_ / name) << (name == "2024_results.txt" ? "mine" : "graph @mine");
  }
  options_.dump_dir = dir_.string();
  ASSERT_TRUE(RunOne(Idle()).ok());
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    left.insert(entry.path().filename().string());
  }
  std::set<std::string> expected = kept;
  expected.insert("00_input.txt");
  EXPECT_EQ(left, expected);
}

TEST_F(PassManagerTest, DumpThatCannotBeWrittenIsAnError) {
  std::ofstream(dir_) << "a file where the folder should be";
  options_.dump_dir = dir_.string();
  const absl::Status status = RunOne(Idle());
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Message(status), HasSubstr(dir_.string()));
}

TEST(PipelineNames, MakePassByName) {
  for (const std::string& name : PassNames()) {
    const auto pass = MakePass(name);
    ASSERT_TRUE(pass.ok()) << pass.status();
    EXPECT_EQ((*pass)->name(), name);
  }
  const auto unknown = MakePass("inline");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(unknown.status()), HasSubstr("pass \"inline\" is unknown; expected one of"));
}

}  // namespace
}  // namespace halftone::passes
