// Training through the module, as programs do where CUDA is real: the loader opens a shared object whose
// symbols are its own, and the runtime's objects pass between two copies of the lower layers.
#if defined(HALFTONE_CUDA_EMULATED)

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "halftone/tests/cuda_step/both_devices.h"

namespace halftone::nn {
namespace {

using halftone::testing::RandomTensor;
using halftone::testing::Train;
using halftone::testing::Trajectory;

constexpr int kModuleSteps = 2;

// Convolution, normalisation and product, in f16: kernels of the libraries and our own.
class ModuleNet : public Graph {
 public:
  ModuleNet()
      : net_(Conv2d(3, 8, 3, {.padding = 1}), BatchNorm2d(8), ReLU(), MaxPool2d(2), Flatten(),
             Linear(8 * 3 * 3, 5)) {
    add_module("net", net_);
    add_optimizer(optim::AdamW(parameters(), {.lr = 1e-2, .clip_norm = 1}));
    config.enable_amp(true, {.dtype = DType::kF16});
    set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
  }
  Values build(const Values& in) override {
    const Value loss = cross_entropy(net_(in[0]), in[1]);
    loss.backward();
    return {loss};
  }

 private:
  Sequential net_;
};

// Every number of two steps, to the last bit.
std::string TwoSteps() {
  ModuleNet graph;
  const Trajectory trajectory =
      Train(graph, Device::Cuda(0), kModuleSteps, [](int step) -> std::vector<Tensor> {
        Tensor labels = Tensor::Empty(DType::kI64, {8});
        for (int64_t i = 0; i < 8; ++i) labels.set(i, static_cast<double>((i + step) % 5));
        return {RandomTensor(DType::kF32, {8, 3, 6, 6}, 7 + static_cast<uint64_t>(step)), labels};
      });
  std::ostringstream text;
  text << std::hexfloat;
  for (const double loss : trajectory.losses) text << "loss " << loss << "\n";
  for (const auto& [name, value] : trajectory.state) {
    text << name;
    for (const double x : value.ToVector()) text << " " << x;
    text << "\n";
  }
  return text.str();
}

// The variable that CudaModule.TrainsAsTheLinkedBackend sets for the process that it starts.
constexpr char kResultFile[] = "HALFTONE_MODULE_RESULT";

TEST(CudaModuleChild, Trains) {
  const char* const file = std::getenv(kResultFile);
  if (file == nullptr) GTEST_SKIP() << "CudaModule starts it";
  std::ofstream(file) << TwoSteps();
  std::ifstream maps("/proc/self/maps");
  const std::string mapped{std::istreambuf_iterator<char>(maps), {}};
  EXPECT_NE(mapped.find(HALFTONE_EMULATED_MODULE), std::string::npos) << "not by the module";
}

TEST(CudaModule, TrainsAsTheLinkedBackend) {
  const std::string want = TwoSteps();
  EXPECT_GT(std::count(want.begin(), want.end(), '\n'), kModuleSteps + 6) << want;
  const std::string file =
      ::testing::TempDir() + "halftone_module_result_" + std::to_string(getpid());
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const int status = std::system(
      ("env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX HALFTONE_CUDA_LIBRARY=" HALFTONE_EMULATED_MODULE
       " " +
       std::string(kResultFile) + "=" + file + " " + self +
       " --gtest_brief=1 --gtest_filter=CudaModuleChild.Trains")
          .c_str());
  EXPECT_EQ(status, 0);
  std::ifstream in(file);
  const std::string got{std::istreambuf_iterator<char>(in), {}};
  std::remove(file.c_str());
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace halftone::nn

#endif
