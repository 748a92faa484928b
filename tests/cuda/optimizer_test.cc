// Groups of parameters updated in place: many arrays, 16-bit copies, skipped steps, faults.
#include <gtest/gtest.h>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/kernels/cuda/runtime/status.h"
#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

using kernels::DeviceRunState;

enum Port { kParam, kGrad, kLr, kInvScale, kClip, kApply, kStep, kState };

struct Setting {
  const char* op;
  ir::Attributes attrs;
  int states;
  double lowest_state = 0;  // of the first state: a mean of squares is no less than that of a mean
  double error = 1;         // the absolute one, in times of the usual: sums whose terms cancel
  DType dtype = DType::kF32;
};

Setting Sgd() { return {"sgd_update", {{"weight_decay", 0.01}}, 0}; }
Setting Momentum() { return {"sgd_update", {{"momentum", 0.9}, {"nesterov", true}}, 1}; }
Setting Adam() { return {"adam_update", {{"weight_decay", 0.01}, {"decoupled", true}}, 2}; }
Setting Rmsprop() { return {"rmsprop_update", {{"weight_decay", 0.01}}, 1}; }
Setting RmspropMomentum() { return {"rmsprop_update", {{"momentum", 0.9}}, 2, 2, 5}; }
Setting RmspropCentered() {
  return {"rmsprop_update", {{"centered", true}, {"eps", 0.1}}, 2, 2, 5};
}
Setting RmspropAll() {
  return {"rmsprop_update", {{"centered", true}, {"momentum", 0.9}, {"eps", 0.1}}, 3, 2, 5};
}

Setting Adagrad() { return {"adagrad_update", {{"lr_decay", 0.25}}, 1}; }
Setting Lion() { return {"lion_update", {{"weight_decay", 0.01}}, 1}; }
Setting Nadam() { return {"nadam_update", {{"weight_decay", 0.01}}, 2}; }
Setting Lamb() { return {"lamb_update", {}, 2}; }
Setting MovingAverage() { return {"moving_average_update", {}, 0}; }
Setting GradientSum() { return {"gradient_sum_update", {}, 0}; }

std::vector<int64_t> Sizes(size_t count) {
  const int64_t sizes[] = {1, 31, 33, 8193, 0, 4096, 257, 2};
  std::vector<int64_t> result;
  for (size_t i = 0; i < count; ++i) result.push_back(i < 16 ? sizes[i % 8] : sizes[i % 3]);
  return result;
}

struct Scalars {
  double lr = 0.125, inv_scale = 1.0 / 1024, clip = 0.75;
  bool apply = true;
  int64_t step = 1;
};

// The parameters of one optimizer on the host; members share the scalar operands.
class Parameters {
 public:
  // Copies of members i % 3 == 1 (f16) and 2 (bf16).
  Parameters(const Setting& setting, const std::vector<int64_t>& sizes) : graph_("updates") {
    ir::Builder b(&graph_);
    std::vector<ir::Expr> scalars;
    for (const char* name : {"lr", "inv_scale", "clip"}) {
      scalars.push_back(b.Input(name, {DType::kF32, Shape{}}));
    }
    scalars.push_back(b.Input("apply", {DType::kBool, Shape{}}));
    scalars.push_back(b.Input("step", {DType::kI64, Shape{}}));
    for (size_t i = 0; i < sizes.size(); ++i) {
      const ir::ValueType type{setting.dtype, Shape{sizes[i]}};
      std::vector<ir::Expr> inputs = {b.Input(Concat("param", i), type),
                                      b.Input(Concat("grad", i), type)};
      inputs.insert(inputs.end(), scalars.begin(), scalars.end());
      values_.push_back({Random(type, i, 0, -1)});
      for (int s = 0; s < setting.states; ++s) {
        inputs.push_back(b.Input(Concat("state", i, "_", s), type));
        values_.back().push_back(Random(type, i, 1 + s, 0, s == 0 ? setting.lowest_state : 0));
      }
      ir::Attributes attrs = setting.attrs;
      attrs.Set("seed", static_cast<int64_t>(100 + i));
      if (IsKahan(setting)) values_.back().back() = Scaled(values_.back().back(), 0x1p-10);
      if (i % 3 != 0) attrs.Set("low", i % 3 == 1 ? DType::kF16 : DType::kBF16);
      nodes_.push_back(b.Make(setting.op, inputs, attrs)[0].value().node);
    }
    HT_CHECK(b.status().ok(), "a graph of updates");
  }
  const std::vector<const ir::Node*>& nodes() const { return nodes_; }
  // The parameter and its states, which the outputs of an update replace.
  std::vector<std::vector<Tensor>>& values() { return values_; }

  std::vector<Tensor> Inputs(size_t i, const Scalars& s) const {
    std::vector<Tensor> inputs = {values_[i][0],
                                  Random(nodes_[i]->output_type(), i, 10 + s.step, -1024),
                                  Tensor::Scalar(DType::kF32, s.lr),
                                  Tensor::Scalar(DType::kF32, s.inv_scale),
                                  Tensor::Scalar(DType::kF32, s.clip),
                                  Tensor::Scalar(DType::kBool, s.apply ? 1 : 0),
                                  Tensor::Scalar(DType::kI64, static_cast<double>(s.step))};
    inputs.insert(inputs.end(), values_[i].begin() + 1, values_[i].end());
    return inputs;
  }

 private:
  static bool IsKahan(const Setting& setting) {
    return setting.attrs.Has("rounding") && setting.attrs.GetString("rounding") == "kahan";
  }
  static Tensor Scaled(const Tensor& t, double factor) {
    std::vector<double> values = t.ToVector();
    for (double& v : values) v *= factor;
    return Tensor::Of(t.dtype(), t.shape(), values);
  }

  // In [lo, -lo), or [lowest, lowest + 1) for a state, whose `lo` is 0.
  static Tensor Random(const ir::ValueType& type, size_t i, int64_t stream, double lo,
                       double lowest = 0) {
    PhiloxStream random(i, static_cast<uint64_t>(stream));
    std::vector<double> values(static_cast<size_t>(type.num_elements()));
    for (double& v : values) v = lowest + lo + (lo == 0 ? 1 : -2 * lo) * random.Uniform();
    return Tensor::Of(type.dtype, type.shape, values);
  }

  ir::Graph graph_;
  std::vector<const ir::Node*> nodes_;
  std::vector<std::vector<Tensor>> values_;
};

struct Ran {
  std::vector<std::vector<Tensor>> values;  // parameter and states of each member
  std::vector<Tensor> copies;
};

// One step of all members by one kernel, their copies filled with `copy_before`. Not in place:
// outputs of their own.
Ran RunGroup(Parameters& p, const Scalars& scalars, bool in_place = true, int64_t fault_id = 0,
             unsigned char copy_before = 0x77) {
  const auto& candidate = *CudaCandidates(p.nodes()[0]->op().name).at(0);
  std::vector<DeviceMemory> memory;
  memory.reserve(p.nodes().size() * 12);
  std::vector<const void*> inputs;
  std::vector<void*> outputs, copies;
  Ran ran;
  std::vector<size_t> reads;  // where the values and copies of each member lie
  ran.values.resize(p.nodes().size());
  ran.copies.resize(p.nodes().size());
  std::vector<const void*> shared(kState);
  for (size_t i = 0; i < p.nodes().size(); ++i) {
    const ir::Node& node = *p.nodes()[i];
    const std::optional<DType> copy = ops::LowCopyOf(node);
    const std::vector<Tensor> host = p.Inputs(i, scalars);
    for (size_t port = 0; port < host.size(); ++port) {
      const bool scalar = port >= kLr && port <= kStep;
      if (!scalar || i == 0) memory.emplace_back(host[port].raw(), host[port].num_bytes());
      if (scalar && i == 0) shared[port] = memory.back().data();
      inputs.push_back(scalar ? shared[port] : memory.back().data());
      if (port != kParam && port < kState) continue;
      if (!in_place) memory.emplace_back(host[port].num_bytes());
      outputs.push_back(memory.back().data());
      ran.values[i].push_back(host[port].Clone());
      reads.push_back(memory.size() - 1);
    }
    copies.push_back(nullptr);
    if (copy.has_value()) {
      const Shape& shape = node.output_type().shape;
      ran.copies[i] = Tensor::Empty(*copy, shape);
      const std::vector<unsigned char> before(ran.copies[i].num_bytes(), copy_before);
      memory.emplace_back(before.data(), before.size());
      copies.back() = memory.back().data();
      reads.push_back(memory.size() - 1);
    }
  }
  auto kernel = candidate.create_group(p.nodes());
  HT_CHECK(kernel.ok() && (*kernel)->keeps_state_on_fault(), "a kernel for the group");
  DeviceRunState device_state;
  device_state.fault_id = fault_id;
  const DeviceMemory state_memory(&device_state, sizeof(device_state));
  const DeviceMemory workspace((*kernel)->workspace_bytes());
  kernels::RunState state;
  state.device = static_cast<DeviceRunState*>(state_memory.data());
  (*kernel)->Run({inputs.data(), outputs.data(), workspace.data(), &state, 1, copies.data()});
  EXPECT_TRUE(state.error.ok()) << state.error;
  size_t next = 0;
  for (size_t i = 0; i < p.nodes().size(); ++i) {
    for (Tensor& t : ran.values[i]) CheckCuda(memory[reads[next++]].Read(t.raw()));
    if (!ran.copies[i].defined()) continue;
    CheckCuda(memory[reads[next++]].Read(ran.copies[i].raw()));
  }
  return ran;
}

Tensor Rounded(const Tensor& t, DType dtype) {
  std::vector<double> values;
  for (int64_t i = 0; i < t.num_elements(); ++i) values.push_back(t.at(i));
  return Tensor::Of(dtype, t.shape(), values);
}

void ExpectCopiesOfParameters(const Ran& ran) {
  for (size_t i = 0; i < ran.values.size(); ++i) {
    if (!ran.copies[i].defined()) continue;
    EXPECT_TRUE(BitEqual(ran.copies[i], Rounded(ran.values[i][0], ran.copies[i].dtype())))
        << "copy of member " << i;
  }
}

void ExpectSameBits(const std::vector<std::vector<Tensor>>& got,
                    const std::vector<std::vector<Tensor>>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    for (size_t s = 0; s < want[i].size(); ++s) {
      EXPECT_TRUE(BitEqual(got[i][s], want[i][s])) << "member " << i << ", value " << s;
    }
  }
}

class OptimizerGroupTest : public ::testing::TestWithParam<Setting (*)()> {
 protected:
  Setting setting() const { return GetParam()(); }
};

TEST_P(OptimizerGroupTest, GroupsOfAnySizeAgreeWithTheReference) {
  for (size_t count : {1, 3, 40, 200}) {
    Parameters p(setting(), Sizes(count));
    const Scalars scalars{.step = 3};
    const Ran ran = RunGroup(p, scalars);
    ExpectCopiesOfParameters(ran);
    for (size_t i = 0; i < count; ++i) {
      const auto want = RunReference(*p.nodes()[i], p.Inputs(i, scalars));
      ASSERT_TRUE(want.ok());
      for (size_t s = 0; s < want->size(); ++s) {
        EXPECT_TRUE(IsClose(ran.values[i][s], (*want)[s], 1e-6, setting().error * 1e-7))
            << "member " << i << " of " << count << ", output " << s;
      }
    }
  }
}

TEST_P(OptimizerGroupTest, TwentyStepsFollowTheReference) {
  Parameters device(setting(), Sizes(5)), reference(setting(), Sizes(5));
  for (int64_t step = 1; step <= 20; ++step) {
    const Scalars scalars{.lr = 0.01, .step = step};
    device.values() = RunGroup(device, scalars).values;
    for (size_t i = 0; i < 5; ++i) {
      reference.values()[i] = *RunReference(*reference.nodes()[i], reference.Inputs(i, scalars));
    }
  }
  for (size_t i = 0; i < 5; ++i) {
    for (size_t s = 0; s < device.values()[i].size(); ++s) {
      EXPECT_TRUE(
          IsClose(device.values()[i][s], reference.values()[i][s], 1e-5, setting().error * 1e-6))
          << "member " << i << ", output " << s;
    }
  }
}

TEST_P(OptimizerGroupTest, DoublesToo) {
  Setting s = setting();
  s.dtype = DType::kF64;
  Parameters p(s, Sizes(6));
  const Scalars scalars{.step = 2};
  const Ran ran = RunGroup(p, scalars);
  ExpectCopiesOfParameters(ran);
  for (size_t i = 0; i < 6; ++i) {
    const auto want = RunReference(*p.nodes()[i], p.Inputs(i, scalars));
    ASSERT_TRUE(want.ok());
    for (size_t k = 0; k < want->size(); ++k) {
      EXPECT_TRUE(IsClose(ran.values[i][k], (*want)[k], 1e-13, 1e-14));
    }
  }
}

TEST_P(OptimizerGroupTest, ASkippedStepChangesNothing) {
  Parameters p(setting(), Sizes(40));
  for (bool in_place : {true, false}) {
    const Ran ran = RunGroup(p, {.apply = false}, in_place);
    ExpectSameBits(ran.values, p.values());
    ExpectCopiesOfParameters(ran);
  }
}

TEST_P(OptimizerGroupTest, AFaultLeavesVariablesAndCopiesUntouched) {
  Parameters p(setting(), Sizes(40));
  for (bool apply : {true, false}) {
    const Ran ran = RunGroup(p, {.apply = apply}, true, /*fault_id=*/5, 0x77);
    ExpectSameBits(ran.values, p.values());
    for (const Tensor& copy : ran.copies) {
      if (!copy.defined()) continue;
      const auto* bytes = static_cast<const unsigned char*>(copy.raw());
      for (size_t i = 0; i < copy.num_bytes(); ++i) ASSERT_EQ(bytes[i], 0x77);
    }
  }
}

TEST_P(OptimizerGroupTest, OutputsOfTheirOwnGetTheSameBits) {
  Parameters p(setting(), Sizes(4));
  ExpectSameBits(RunGroup(p, {.step = 2}, false).values, RunGroup(p, {.step = 2}, true).values);
}

// bf16: products by powers of two are exact, so whether a device adds them in one step or two makes
// no difference, and the bits are the CPU's.
class LowUpdateTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<Setting> settings() const {
    const std::string rounding = GetParam();
    const int kept = rounding == "kahan" ? 1 : 0;
    return {
        {"sgd_update", {{"rounding", rounding}}, kept, 0, 1, DType::kBF16},
        {"sgd_update", {{"rounding", rounding}, {"momentum", 0.5}}, 1 + kept, 0, 1, DType::kBF16}};
  }
};

TEST_P(LowUpdateTest, GroupsOfAnySizeHaveTheBitsOfTheCpu) {
  for (const Setting& setting : settings()) {
    for (const bool in_place : {true, false}) {
      Parameters p(setting, Sizes(100));
      const Scalars scalars{.step = 3};
      const Ran ran = RunGroup(p, scalars, in_place);
      ExpectCopiesOfParameters(ran);
      for (size_t i = 0; i < 100; ++i) {
        const ir::Node& node = *p.nodes()[i];
        auto kernel = kernels::KernelRegistry::Global().Select(node, Device::Kind::kCpu);
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        EXPECT_EQ((*kernel)->name(), "cpu:simd:sgd_update");
        const auto want = RunKernel(**kernel, node, p.Inputs(i, scalars));
        ASSERT_TRUE(want.ok()) << want.status();
        for (size_t s = 0; s < want->size(); ++s) {
          EXPECT_TRUE(BitEqual(ran.values[i][s], (*want)[s])) << "member " << i << ", output " << s;
        }
      }
    }
  }
}

TEST_P(LowUpdateTest, ASkippedStepChangesNothing) {
  for (const Setting& setting : settings()) {
    Parameters p(setting, Sizes(40));
    for (const bool in_place : {true, false}) {
      const Ran ran = RunGroup(p, {.apply = false}, in_place);
      ExpectSameBits(ran.values, p.values());
      ExpectCopiesOfParameters(ran);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LowUpdateTest, ::testing::Values("stochastic", "kahan"));

std::string SettingName(const ::testing::TestParamInfo<Setting (*)()>& info) {
  const char* const names[] = {
      "Sgd",     "Momentum", "Adam",  "Rmsprop", "RmspropMomentum", "RmspropCentered", "RmspropAll",
      "Adagrad", "Lion",     "Nadam", "Lamb",    "MovingAverage",   "GradientSum"};
  return names[info.index];
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerGroupTest,
                         ::testing::Values(Sgd, Momentum, Adam, Rmsprop, RmspropMomentum,
                                           RmspropCentered, RmspropAll, Adagrad, Lion, Nadam, Lamb,
                                           MovingAverage, GradientSum),
                         SettingName);

}  // namespace
}  // namespace halftone::testing
