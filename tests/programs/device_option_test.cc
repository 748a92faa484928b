// --device, and the one line that a program says where there is no CUDA.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

constexpr bool kHasModule = HALFTONE_HAS_CUDA_MODULE != 0;
constexpr bool kEmulated = HALFTONE_HAS_CUDA_EMULATED != 0;

bool HasDriver() { return access("/dev/nvidiactl", F_OK) == 0; }

// Sets an environment variable of the programs that the test starts.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    const char* const before = std::getenv(name);
    was_set_ = before != nullptr;
    if (was_set_) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (was_set_) {
      setenv(name_, before_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  bool was_set_;
  std::string before_;
};

// What halftone_run says of a device that it cannot open, without the prefix and the line's end.
std::string OpenError(const std::string& device) {
  const Result run = Start("tools/halftone_run", "absent.txt --device=" + device);
  EXPECT_EQ(run.status, 2) << run.output;
  EXPECT_EQ(run.out, "");
  const std::string before = "halftone_run: --device=" + device + ": device ";
  EXPECT_EQ(run.err.rfind(before, 0), 0u) << run.err;
  EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
  return run.err.substr(0, run.err.size() - 1).substr(before.size());
}

// Where the backend is a module.
class CudaModule : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kEmulated) GTEST_SKIP() << "linked into the programs";
  }
  std::string ErrorWith(const std::string& library) {
    const ScopedVariable variable("HALFTONE_CUDA_LIBRARY", library);
    return OpenError("cuda:1");
  }
  const TempDir dir_;
};

TEST_F(CudaModule, ANamedFileThatIsNotThere) {
  const std::string path = dir_.Path("absent.so");
  EXPECT_EQ(ErrorWith(path), "cuda:1: cannot load the CUDA module: " + path +
                                 ": cannot open shared object file: "
                                 "No such file or directory (named by HALFTONE_CUDA_LIBRARY)");
}

TEST_F(CudaModule, ANamedFileThatIsNoLibrary) {
  const std::string path = dir_.Path("text.so");
  std::ofstream(path) << "text\n";
  EXPECT_EQ(ErrorWith(path), "cuda:1: cannot load the CUDA module: " + path +
                                 ": file too short (named by HALFTONE_CUDA_LIBRARY)");
}

TEST_F(CudaModule, ALibraryThatIsNone) {
  EXPECT_EQ(ErrorWith("libz.so.1"),
            "cuda:1: cannot load the CUDA module: libz.so.1 has no symbol halftone_cuda_module");
}

TEST_F(CudaModule, OfAnotherBuild) {
  const std::string error = ErrorWith(HALFTONE_OTHER_MODULE);
  EXPECT_EQ(error.rfind("cuda:1: cannot load the CUDA module: " HALFTONE_OTHER_MODULE
                        " is of another build than the program: halftone 0.0.0; expected halftone ",
                        0),
            0u)
      << error;
}

TEST(DeviceOption, WithoutCudaOneLineSaysSo) {
  const ScopedVariable hidden("HALFTONE_EMULATION_NO_DRIVER", "1");
  if (!kHasModule && !kEmulated) {
    EXPECT_EQ(OpenError("cuda"),
              "cuda:0: CUDA is not installed: no libhalftone_cuda.so beside the program, "
              "on its run path or among the system's libraries");
    return;
  }
  if (!kEmulated && HasDriver()) GTEST_SKIP() << "there is a driver";
  EXPECT_EQ(OpenError("cuda"), "cuda:0: no NVIDIA driver is installed");
  EXPECT_EQ(OpenError("cuda:7"), "cuda:7: no NVIDIA driver is installed");
}

TEST(DeviceOption, AModuleMovedAwayIsNotInstalled) {
  if (kEmulated) GTEST_SKIP() << "linked into the programs";
  const TempDir dir;
  const std::string copy = dir.Path("halftone_run");
  std::filesystem::copy_file(HALFTONE_BINARY_DIR "/tools/halftone_run", copy);
  // Start puts the build's folder before the program's name.
  const Result run =
      Start("tools/halftone_run", "--help >/dev/null; " + copy + " absent.txt --device=cuda");
  EXPECT_EQ(run.status, 2);
  EXPECT_TRUE(Has(run,
                  "device cuda:0: CUDA is not installed: "
                  "no libhalftone_cuda.so beside the program, "
                  "on its run path or among the system's libraries"))
      << run.output;
}

TEST(DeviceOption, ProgramsThatTrainRefuseWhatTheyCannotOpen) {
  const ScopedVariable hidden("HALFTONE_EMULATION_NO_DRIVER", "1");
  const ScopedVariable nothing("HALFTONE_CUDA_LIBRARY", "/absent.so");
  for (const std::string program : {"fashion_mnist", "train_step"}) {
    const std::string path = (program == "train_step" ? "benchmarks/" : "examples/") + program;
    for (const char* device : {"reference", "gpu", "cuda:x"}) {
      const Result run = Start(path, std::string("--device=") + device);
      EXPECT_EQ(run.status, 2);
      EXPECT_EQ(run.output, program + ": --device: expected cpu, cuda, cuda:N or auto\n");
    }
    const Result run = Start(path, "--device=cuda");
    EXPECT_EQ(run.status, 2);
    EXPECT_EQ(run.output.rfind(program + ": --device: device cuda:0: ", 0), 0u) << run.output;
    EXPECT_EQ(run.output.find('\n'), run.output.size() - 1) << run.output;
  }
}

TEST(DeviceOption, AutoGoesOnWithTheCpuAndSaysSo) {
  const ScopedVariable hidden("HALFTONE_EMULATION_NO_DRIVER", "1");
  const ScopedVariable nothing("HALFTONE_CUDA_LIBRARY", "/absent.so");
  const Result run = Start("examples/fashion_mnist", "--device=auto --data=/nowhere");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.output.rfind("note: the CPU trains: device cuda:0: ", 0), 0u) << run.output;
  EXPECT_TRUE(Has(run, "/nowhere/train-images-idx3-ubyte")) << run.output;
}

TEST(DeviceOption, TheBareStepIsOneOfTheCpu) {
  if (!kEmulated) GTEST_SKIP() << "no device";
  const Result run = Start("benchmarks/train_step", "--device=cuda --bare");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err, "train_step: --bare: expected --device=cpu\n");
}

TEST(DeviceOption, AStepOnTheDeviceHasTheCpusValues) {
  if (!kEmulated) GTEST_SKIP() << "no device";
  const TempDir dir;
  const std::string graph = dir.Path("step.txt");
  std::ofstream(graph) << "graph @g(%x: f32[2,2]) { %y = exp(%x) return y=%y }";
  const auto output = [&](const char* device) {
    const Result run =
        Start("tools/halftone_run", graph + " --feed x=arange --fetch y --device=" + device);
    EXPECT_EQ(run.status, 0) << run.output;
    return run.out;
  };
  EXPECT_EQ(output("cuda"), output("cpu"));
}

}  // namespace
}  // namespace halftone::testing
