// fashion_mnist with checkpoints: killed, resumed, out of disk, on damaged files. HALFTONE_KILLS is
// the number of kills (default 5).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "halftone/core/io/file_lock.h"
#include "halftone/core/philox.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/tests/programs/child_process.h"
#include "halftone/tests/programs/image_set.h"
#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"
#include "halftone/tools/support/run_history.h"

namespace halftone::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr int kImages = 40, kBatch = 8, kEpochs = 2;

class Resume : public ::testing::Test {
 protected:
  void SetUp() override { WriteImageSet(dir_.Path("data"), kImages); }

  // Arguments of a run that saves at every step.
  std::vector<std::string> Arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"--data=" + dir_.Path("data"),
                                          Concat("--batch=", kBatch),
                                          Concat("--epochs=", kEpochs),
                                          "--threads=1",
                                          "--amp=f16",
                                          "--every=1",
                                          "--checkpoint=" + path_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  // Exit status; output() has what it said.
  int Run(const std::vector<std::string>& more, int64_t max_file_bytes = 0) const {
    return ChildProcess("examples/fashion_mnist", Arguments(more), log_, max_file_bytes).Wait();
  }
  std::string output() const { return Bytes(log_); }

  // Files at the end of an uninterrupted run.
  std::string EndOfUninterruptedRun() {
    EXPECT_EQ(Run({}), 0) << output();
    const std::string bytes = Bytes(path_);
    RemoveCheckpoints();
    return bytes;
  }
  void RemoveCheckpoints() const {
    fs::remove(path_);
    fs::remove(path_ + ".previous");
  }

  const TempDir dir_{MemoryDir()};  // a run saves 20 MB at every step
  const std::string path_ = dir_.Path("run.ckpt"), log_ = dir_.Path("log");
};

// Images trained on so far, according to the newest complete checkpoint; -1 if there is none.
int64_t Position(const std::string& path) {
  std::string note;
  const auto checkpoint = runtime::ReadLatestCheckpoint(path, &note);
  if (absl::IsNotFound(checkpoint.status())) return -1;
  if (!checkpoint.ok()) {
    ADD_FAILURE() << "no complete state is left: " << checkpoint.status();
    return -1;
  }
  return std::stoll(checkpoint->metadata.at("epoch")) * kImages +
         std::stoll(checkpoint->metadata.at("image"));
}

TEST_F(Resume, KilledAnywhereEndsAsIfUninterrupted) {
  const char* wanted = std::getenv("HALFTONE_KILLS");
  const int wanted_kills = wanted == nullptr ? 5 : std::atoi(wanted);
  const Clock::time_point start = Clock::now();
  const std::string expected = EndOfUninterruptedRun();
  ASSERT_FALSE(expected.empty());
  const std::chrono::duration<double> whole = Clock::now() - start;

  PhiloxStream random(static_cast<uint64_t>(getpid()));
  const std::string logged = "--log=" + dir_.Path("run_log");
  int kills = 0, resumed = 0, ends = 0;
  int64_t position = -1;
  const auto expect_end = [&](int status) {
    EXPECT_EQ(status, 0) << output();
    EXPECT_TRUE(Bytes(path_) == expected) << "another end after " << kills << " kills";
    ++ends;
    RemoveCheckpoints();
    position = -1;
  };
  while (kills < wanted_kills && !HasFailure()) {
    ChildProcess run("examples/fashion_mnist", Arguments({"--resume", logged}), log_);
    std::this_thread::sleep_for(whole * static_cast<double>(random.Uniform()));
    const int status = run.Kill();
    int epoch = 0, image = 0;
    if (std::sscanf(output().c_str(), "resumed at epoch %d, image %d", &epoch, &image) == 2) {
      ++resumed;
      EXPECT_EQ((epoch - 1) * kImages + image, position);
    }
    if (status != -1) {  // it was done before
      expect_end(status);
      continue;
    }
    ++kills;
    const int64_t now = Position(path_);
    EXPECT_GE(now, position) << "work that was saved is lost";
    position = now;
  }
  expect_end(Run({"--resume", logged}));
  // The curves have every step once, whatever the kills left in the files.
  const auto history = tools::ReadRun(dir_.Path("run_log"));
  ASSERT_TRUE(history.ok()) << history.status();
  ASSERT_FALSE(history->curves.empty());
  EXPECT_EQ(history->curves[0].tag, "train/loss");
  std::vector<int64_t> steps;
  for (const tools::RunPoint& point : history->curves[0].points) steps.push_back(point.step);
  EXPECT_THAT(steps, ::testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  std::printf("%d kills, %d starts from a checkpoint, %d runs to the end\n", kills, resumed, ends);
}

TEST_F(Resume, SavingDoesNotChangeTheRun) {
  const std::string expected = EndOfUninterruptedRun();
  EXPECT_EQ(Run({"--every=0"}), 0) << output();
  EXPECT_TRUE(Bytes(path_) == expected);
}

TEST_F(Resume, FallsBackOnTheVersionBefore) {
  const std::string expected = EndOfUninterruptedRun();
  ASSERT_EQ(Run({"--epochs=1"}), 0) << output();
  const std::string whole = Bytes(path_);
  WriteBytes(path_, whole.substr(0, whole.size() / 2));
  ASSERT_EQ(Run({"--resume"}), 0) << output();
  EXPECT_THAT(output(), HasSubstr(path_ + ".previous instead"));
  EXPECT_TRUE(Bytes(path_) == expected);
}

TEST_F(Resume, DamagedFilesStopItAndStay) {
  ASSERT_EQ(Run({"--epochs=1"}), 0) << output();
  WriteBytes(path_, "HTCK");
  WriteBytes(path_ + ".previous", "");
  ASSERT_EQ(Run({"--resume"}), 1);
  EXPECT_EQ(output(),
            Concat("fashion_mnist: ", path_, ": has 4 bytes; a checkpoint has at least 32; ", path_,
                   ".previous: has 0 bytes; a checkpoint has at least 32\n"));
  EXPECT_EQ(Bytes(path_), "HTCK");
}

TEST_F(Resume, OnlyFromCheckpointsOfTheProgram) {
  // What it says of a checkpoint with this metadata.
  const auto error = [this](const std::map<std::string, std::string>& metadata) {
    runtime::Checkpoint checkpoint;
    checkpoint.metadata = metadata;
    EXPECT_TRUE(runtime::WriteCheckpoint(path_, checkpoint).ok());
    EXPECT_EQ(Run({"--resume"}), 1);
    return output();
  };
  const std::string start = Concat("fashion_mnist: ", path_, ": ");
  const std::string run = "seed 0, batch 8, 40 images";
  EXPECT_EQ(error({}), start + "has no metadata \"run\"\n");
  EXPECT_EQ(error({{"run", run}}), start + "has no metadata \"epoch\"\n");
  EXPECT_EQ(error({{"run", run}, {"epoch", "0"}}), start + "has no metadata \"image\"\n");
  for (const char* bad : {"", "x", "-1", "1x", "99999999999999999999"}) {
    EXPECT_EQ(error({{"run", run}, {"epoch", bad}, {"image", "0"}}),
              Concat(start, "metadata \"epoch\" is \"", bad, "\"; expected a number, 0 or more\n"));
  }
}

TEST_F(Resume, OnlyDataSetsThatFit) {
  const std::string base = dir_.Path("data/train");
  const auto error = [this] {
    EXPECT_EQ(Run({}), 1);
    return output();
  };
  WriteBytes(base + "-labels-idx1-ubyte", BigEndian(0x801) + BigEndian(1) + "x");
  EXPECT_EQ(error(), Concat("fashion_mnist: ", base, "-labels: got u8[1], expected u8[40]\n"));
  WriteBytes(base + "-images-idx3-ubyte", BigEndian(0x801) + BigEndian(1) + "x");
  EXPECT_EQ(error(), Concat("fashion_mnist: ", base, "-images: got u8[1], expected u8[N,H,W]\n"));
}

TEST_F(Resume, OnlyTheSameRunAndOnlyIfAsked) {
  ASSERT_EQ(Run({"--epochs=1"}), 0) << output();
  const std::string before = Bytes(path_);
  EXPECT_EQ(Run({}), 1);
  EXPECT_EQ(output(), Concat("fashion_mnist: ", path_, " holds another run; expected --resume, or ",
                             "a new name for --checkpoint\n"));
  EXPECT_EQ(Run({"--resume", "--seed=3"}), 1);
  EXPECT_EQ(output(), Concat("fashion_mnist: ", path_,
                             ": was saved by a run with seed 0, batch 8, 40 images; ",
                             "this one has seed 3, batch 8, 40 images\n"));
  EXPECT_EQ(Run({"--resume", "--checkpoint="}), 1);
  EXPECT_EQ(output(), "fashion_mnist: --resume: expected --checkpoint too\n");
  EXPECT_TRUE(Bytes(path_) == before);
  // A run that is complete is only evaluated.
  EXPECT_EQ(Run({"--resume", "--epochs=1"}), 0) << output();
  EXPECT_THAT(output(), HasSubstr("\"steps\": 0"));
  EXPECT_TRUE(Bytes(path_) == before);
}

TEST_F(Resume, F66WithAnotherLearningRate) {
  ASSERT_EQ(Run({"--epochs=1"}), 0) << output();
  const auto lr = [this] {
    return runtime::ReadCheckpoint(path_)->tensors.at("optimizer0.lr").item();
  };
  EXPECT_EQ(lr(), 1e-3f);
  EXPECT_EQ(Run({"--resume", "--lr=0.5", "--epochs=2"}), 0) << output();
  EXPECT_THAT(output(), HasSubstr("learning rate 0.5; 0.001 in the checkpoint\n"));
  EXPECT_EQ(lr(), 0.5);
  // Not given, it is the checkpoint's; so it is where it is the same.
  EXPECT_EQ(Run({"--resume", "--epochs=3"}), 0) << output();
  EXPECT_EQ(output().find("learning rate"), std::string::npos);
  EXPECT_EQ(Run({"--resume", "--lr=0.5", "--epochs=4"}), 0) << output();
  EXPECT_EQ(output().find("learning rate"), std::string::npos);
  EXPECT_EQ(lr(), 0.5);
}

TEST_F(Resume, F65OnlyLearningRatesThatAreFiniteInF32) {
  for (const char* lr : {"--lr=1e39", "--lr=-1", "--lr=nan"}) {
    EXPECT_EQ(Run({lr}), 2);
    EXPECT_EQ(output(), "fashion_mnist: --lr: expected 0 or more and finite in f32\n");
  }
}

TEST_F(Resume, WithAnotherPrecision) {
  ASSERT_EQ(Run({"--epochs=1", "--amp=off"}), 0) << output();
  for (const char* amp : {"--amp=f16", "--amp=bf16"}) {
    EXPECT_EQ(Run({"--resume", amp, amp[6] == 'f' ? "--epochs=2" : "--epochs=3"}), 0) << output();
    EXPECT_THAT(output(), HasSubstr("resumed at epoch "));
  }
}

TEST_F(Resume, F59AFullDiskLosesNothing) {
  const std::string expected = EndOfUninterruptedRun();
  ASSERT_EQ(Run({"--epochs=1"}), 0) << output();
  const std::string before = Bytes(path_);
  EXPECT_EQ(Run({"--resume"}, /*max_file_bytes=*/1 << 20), 1);
  EXPECT_EQ(output(),
            Concat("resumed at epoch 2, image 0\nfashion_mnist: ", path_,
                   ".writing: cannot write: File too large; saved up to epoch 2, image 0: ",
                   "go on with --resume\n"));
  EXPECT_TRUE(Bytes(path_) == before);
  EXPECT_FALSE(fs::exists(path_ + ".writing"));
  EXPECT_FALSE(fs::exists(path_ + ".lock"));
  // With space again it goes on.
  EXPECT_EQ(Run({"--resume"}), 0) << output();
  EXPECT_TRUE(Bytes(path_) == expected);
}

TEST_F(Resume, F58SaysThatNothingIsSaved) {
  EXPECT_EQ(Run({}, /*max_file_bytes=*/1 << 20), 1);
  EXPECT_EQ(output(), Concat("fashion_mnist: ", path_, ".writing: cannot write: File too large; ",
                             "nothing of this run is saved, its steps are lost\n"));
}

TEST_F(Resume, TwoRunsDoNotShareACheckpoint) {
  const auto lock = io::FileLock::Acquire(path_);  // as the first run does
  ASSERT_TRUE(lock.ok()) << lock.status();
  for (const char* resume : {"--resume", "--noresume"}) {
    EXPECT_EQ(Run({resume}), 1);
    EXPECT_THAT(output(), HasSubstr(Concat(path_, ": process ", getpid(), " works on it")));
    EXPECT_FALSE(fs::exists(path_));
  }
}

// What a program prints is its result: where that is lost, it has failed.
TEST_F(Resume, F60LostOutputIsAFailure) {
  std::string arguments;
  for (const std::string& argument : Arguments({})) arguments += argument + " ";
  Result run = Start("examples/fashion_mnist", arguments + ">/dev/full");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("fashion_mnist: cannot write standard output: No space left"));
  EXPECT_TRUE(fs::exists(path_)) << "the checkpoint is there all the same";
  run = Start("examples/fashion_mnist", arguments + "--resume >&-");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("fashion_mnist: cannot write standard output: Bad file"));
}

TEST_F(Resume, AFolderThatCannotBeWritten) {
  const std::string path = dir_.Path("data/train-images-idx3-ubyte/c");
  EXPECT_EQ(Run({"--checkpoint=" + path}), 1);
  EXPECT_EQ(output(), "fashion_mnist: " + path + ".lock: no such file or directory\n");
}

}  // namespace
}  // namespace halftone::testing
