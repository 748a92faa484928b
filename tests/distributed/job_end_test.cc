// How a job ends in which a rank is killed, hangs or has something else than the others. HALFTONE_KILLS
// is the number of kills (default 2).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "halftone/core/philox.h"
#include "halftone/tests/distributed/job.h"
#include "halftone/tests/programs/image_set.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class JobEnd : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!WhyNoJobs().empty()) GTEST_SKIP() << WhyNoJobs();
    WriteImageSet(dir_.Path("data"), 40);
  }
  // Of fashion_mnist, which saves at every step: 10 of them.
  std::string Arguments(const std::string& more = "") const {
    return Concat("--distributed --batch=8 --epochs=2 --threads=1 --amp=off --every=1 --data=",
                  dir_.Path("data"), " --checkpoint=", path_, " ", more);
  }
  void RemoveCheckpoints() const {
    fs::remove(path_);
    fs::remove(path_ + ".previous");
  }
  const TempDir dir_{MemoryDir()};
  const std::string path_ = dir_.Path("run.ckpt"), log_ = dir_.Path("log");
  const std::string program_ = "examples/fashion_mnist";
};

TEST_F(JobEnd, OfAKilledRankIsSoonAndResumes) {
  const char* const wanted = std::getenv("HALFTONE_KILLS");
  const int wanted_kills = wanted == nullptr ? 2 : std::atoi(wanted);
  const Clock::time_point start = Clock::now();
  const Result whole_run = StartJob(4, program_, Arguments());
  ASSERT_EQ(whole_run.status, 0) << whole_run.output;
  const double whole = SecondsSince(start);
  const std::string expected = Bytes(path_);
  ASSERT_FALSE(expected.empty());
  RemoveCheckpoints();

  PhiloxStream random(static_cast<uint64_t>(getpid()));
  double slowest = 0;
  int kills = 0, ends = 0, stuck = 0;
  while (kills < wanted_kills && !HasFailure()) {
    RunningJob job(JobCommand(4, program_, Arguments("--resume")), log_);
    std::this_thread::sleep_for(
        std::chrono::duration<double>(whole * static_cast<double>(random.Uniform())));
    const std::vector<pid_t> ranks = job.Ranks();
    if (!ranks.empty()) kill(ranks[random.Below(ranks.size())], SIGKILL);
    const Clock::time_point killed = Clock::now();
    while (!ranks.empty() && !job.Ranks().empty() && SecondsSince(killed) < 10) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const double ended = SecondsSince(killed);
    ASSERT_LT(ended, 10) << "the others go on: " << Bytes(log_);
    const std::optional<int> status = job.Wait(ranks.empty() ? 60 : 5);
    // mpirun itself may hang where a rank dies while it joins (PMIx of Open MPI 4.1): no rank is left then.
    if (!status.has_value()) ++stuck;
    if (status == 0) {  // it was done before
      EXPECT_TRUE(Bytes(path_) == expected) << "another end after " << kills << " kills";
      RemoveCheckpoints();
      ++ends;
      continue;
    }
    if (ranks.empty()) continue;
    ++kills;
    slowest = std::max(slowest, ended);
  }
  const Result last = StartJob(4, program_, Arguments("--resume"));
  EXPECT_EQ(last.status, 0) << last.output;
  EXPECT_TRUE(Bytes(path_) == expected) << "another end after " << kills << " kills";
  std::printf(
      "%d kills, the others ended after %.2f s at most; %d runs to the end; mpirun hung %d times\n",
      kills, slowest, ends, stuck);
}

// The state has no number of ranks; a run with another one goes on with other roundings.
TEST_F(JobEnd, ResumesOnAnotherNumberOfRanks) {
  ASSERT_EQ(StartJob(4, program_, Arguments("--epochs=1")).status, 0);
  const Result resumed = StartJob(2, program_, Arguments("--resume"));
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_TRUE(Has(resumed, "resumed at epoch 2, image 0")) << resumed.output;
  EXPECT_TRUE(Has(resumed, "\"steps\": 5,")) << resumed.output;
}

TEST_F(JobEnd, OfARankThatHangsNamesIt) {
  RunningJob job(
      JobCommand(4, program_, Arguments("--epochs=100000"), "HALFTONE_DISTRIBUTED_TIMEOUT=2"),
      log_);
  const Clock::time_point start = Clock::now();
  while (!fs::exists(path_ + ".previous") && SecondsSince(start) < 30) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const std::vector<pid_t> ranks = job.Ranks();
  ASSERT_EQ(ranks.size(), 4u) << Bytes(log_);
  kill(ranks[3], SIGSTOP);
  const std::optional<int> status = job.Wait(12);
  kill(ranks[3], SIGCONT);
  ASSERT_TRUE(status.has_value()) << Bytes(log_);
  EXPECT_NE(*status, 0);
  EXPECT_THAT(Bytes(log_), HasSubstr("has waited 2 s for rank "));
}

// mpirun with other arguments for the last rank.
TEST_F(JobEnd, OfAMissingFileNamesTheRank) {
  const std::string other = Concat(": -n 1 ", HALFTONE_BINARY_DIR, "/", program_,
                                   " --distributed --batch=8 --data=", dir_.Path("gone"));
  const Result job = StartJob(3, program_, Arguments("--checkpoint= ") + other);
  EXPECT_NE(job.status, 0);
  EXPECT_TRUE(Has(job, "fashion_mnist: rank 3: ")) << job.output;
  EXPECT_TRUE(Has(job, "gone")) << job.output;
}

TEST_F(JobEnd, OfAnotherProgramNamesTheRank) {
  const std::string other = Concat(": -n 1 ", HALFTONE_BINARY_DIR, "/", program_, " ",
                                   Arguments("--checkpoint= --seed=3"));
  const Result job = StartJob(3, program_, Arguments("--checkpoint= ") + other);
  EXPECT_NE(job.status, 0);
  EXPECT_TRUE(Has(job, "rank 3: graph @fashion_cnn: config.seed: 3, of rank 0 0")) << job.output;
}

TEST_F(JobEnd, OfAFullDiskNamesTheRank) {
  // The ranks cannot write files of more than 12 MB; the state has 19.
  std::string command = JobCommand(2, program_, Arguments());
  command.insert(command.find(HALFTONE_BINARY_DIR), "sh -c 'ulimit -f 24000; exec \"$@\"' - ");
  RunningJob job(command, log_);
  const std::optional<int> status = job.Wait(30);
  ASSERT_TRUE(status.has_value()) << Bytes(log_);
  EXPECT_NE(*status, 0);
  EXPECT_THAT(Bytes(log_), HasSubstr("fashion_mnist: rank 0: "));
  EXPECT_THAT(Bytes(log_), HasSubstr("nothing of this run is saved"));
  EXPECT_FALSE(fs::exists(path_));
}

}  // namespace
}  // namespace halftone::testing
