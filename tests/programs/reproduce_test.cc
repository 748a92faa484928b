// A step of a program, run again from the files that its dump leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/core/io/npy.h"
#include "halftone/graph/ir/proto.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/fn_graph.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

// Two layers with norm statistics, masks, a scaler and Adam: every kind of state.
class Model : public nn::Graph {
 public:
  explicit Model(const std::string& dump_dir)
      : nn::Graph("model"), in_(4, 8), norm_(8), drop_(0.5), out_(8, 3) {
    add_module("in", in_);
    add_module("norm", norm_);
    add_module("drop", drop_);
    add_module("out", out_);
    out_.keep_fp32();
    add_optimizer(optim::Adam(parameters(), {.lr = 0.1}));
    set_grad_scaler(amp::GradScaler({.init_scale = 256}));
    config.enable_amp(true, {.dtype = DType::kF16});
    config.seed = 7;
    config.dump_dir = dump_dir;
  }
  nn::Values build(const nn::Values& in) override {
    nn::Value h = norm_(nn::unsqueeze(nn::unsqueeze(in_(in[0]), 2), 3));
    h = drop_(nn::relu(nn::flatten(h, 1)));
    nn::Value loss = nn::cross_entropy(out_(h), in[1]);
    loss.backward();
    return {loss};
  }

 private:
  nn::Linear in_;
  nn::BatchNorm2d norm_;
  nn::Dropout drop_;
  nn::Linear out_;
};

// Inputs of a batch; `k` tells them apart.
std::vector<Tensor> Batch(int64_t rows, int k) {
  Tensor x = Tensor::Empty(DType::kF32, {rows, 4}), y = Tensor::Empty(DType::kI64, {rows});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.set(i, std::sin(static_cast<double>(i + 7 * k)));
  for (int64_t i = 0; i < rows; ++i) y.set(i, static_cast<double>((i + k) % 3));
  return {x, y};
}

class Reproduce : public ::testing::Test {
 protected:
  // The loss of a step of the program.
  Tensor Step(Model& model, int64_t rows, int k) {
    auto out = model(Batch(rows, k));
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0] : Tensor::Zeros(DType::kF32, {});
  }
  // The same from the files in `folder`.
  Tensor StepFrom(const std::string& folder, const std::string& options = "") {
    const std::string dump = dir_.Path(folder), graph = dump + "/00_input.txt";
    const auto traced = ir::ReadGraphFile(graph);
    EXPECT_TRUE(traced.ok()) << traced.status();
    const std::string loss = (*traced)->outputs()[0].value.node->name();
    const Result run =
        Start("tools/halftone_run",
              Concat(graph, " --variables ", dump, "/variables.ckpt --feed in0=", dump,
                     "/in0.npy,in1=", dump, "/in1.npy --fetch ", loss, " --out ", dir_.Path("out"),
                     options));
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.err, "");
    const auto value = io::ReadNpy(dir_.Path("out/" + loss + ".npy"));
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? *value : Tensor::Zeros(DType::kF32, {});
  }
  const TempDir dir_;
};

TEST_F(Reproduce, TheFirstStepAndALaterOne) {
  Model model(dir_.path());
  const Tensor first = Step(model, 16, 0);
  const Tensor second = Step(model, 16, 1);
  Step(model, 16, 2);
  const Tensor fourth = Step(model, 5, 3);  // another signature: the state of that moment

  EXPECT_TRUE(BitEqual(StepFrom("model_0"), first));
  EXPECT_TRUE(BitEqual(StepFrom("model_1"), fourth));
  // It can differ: other masks, other values.
  EXPECT_FALSE(BitEqual(first, fourth));
  // The second step in the reproduction is that of the program, on the inputs of the first.
  Model again("");
  Step(again, 16, 0);
  const Tensor repeated = Step(again, 16, 0);
  EXPECT_FALSE(BitEqual(repeated, second));
  EXPECT_TRUE(BitEqual(StepFrom("model_0", " --steps 2"), repeated));
}

TEST_F(Reproduce, AFolderStandsForItsFiles) {
  Model model(dir_.path());
  const Tensor loss = Step(model, 16, 0);
  const std::string folder = dir_.Path("model_0");
  const auto traced = ir::ReadGraphFile(folder + "/00_input.txt");
  ASSERT_TRUE(traced.ok()) << traced.status();
  // So does the only folder in a folder.
  EXPECT_EQ(Start("tools/halftone_run", dir_.path()).status, 0);
  const std::string name = (*traced)->outputs()[0].value.node->name();
  const auto value = [&](const std::string& options) {
    const Result run = Start("tools/halftone_run", Concat(folder, " --out ", dir_.Path("out"),
                                                          " --fetch ", name, options));
    EXPECT_EQ(run.status, 0) << run.err;
    const auto read = io::ReadNpy(dir_.Path("out/" + name + ".npy"));
    return read.ok() ? *read : Tensor::Zeros(DType::kF32, {});
  };
  EXPECT_TRUE(BitEqual(value(""), loss));
  // A feed given overrules the file.
  EXPECT_FALSE(BitEqual(value(" --feed in0=zeros"), loss));
  // Each kernel of the step does what the reference kernel does.
  const Result compared = Start("tools/halftone_run", folder + " --compare reference");
  EXPECT_EQ(compared.status, 0) << compared.output;
  EXPECT_THAT(compared.out, ::testing::HasSubstr(" values are within 0.03\n"));
}

TEST_F(Reproduce, VariablesAreACheckpointOfTheProgram) {
  Model model(dir_.path());
  Step(model, 16, 0);
  Step(model, 16, 1);
  const Tensor third = Step(model, 5, 2);
  const auto checkpoint = runtime::ReadCheckpoint(dir_.Path("model_1/variables.ckpt"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tensors.at("run_count").item(), 2);
  Model restored("");
  const auto loaded = restored.load_state_dict(checkpoint->tensors);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(BitEqual(Step(restored, 5, 2), third));
}

TEST_F(Reproduce, AFolderThatCannotBeWrittenIsAnError) {
  WriteBytes(dir_.Path("file"), "in the way");
  Model model(dir_.Path("file"));
  const auto out = model(Batch(4, 0));
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(Message(out.status()), ::testing::HasSubstr(dir_.Path("file")));
}

}  // namespace
}  // namespace halftone::testing
