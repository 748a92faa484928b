// Jobs of several processes on this machine, started as a user starts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "halftone/halftone.h"
#include "halftone/tests/distributed/job.h"

namespace halftone::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Job : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!WhyNoJobs().empty()) GTEST_SKIP() << WhyNoJobs();
  }
};

TEST_F(Job, OfTwoRanksPassesItsTests) {
  const Result job = StartJob(2, "tests/rank_tests");
  EXPECT_EQ(job.status, 0) << job.output;
}

TEST_F(Job, OfFourRanksPassesItsTests) {
  const Result job = StartJob(4, "tests/rank_tests");
  EXPECT_EQ(job.status, 0) << job.output;
}

// A job of one rank of each of two programs.
Result StartPair(const std::string& first, const std::string& second) {
  return StartJob(1, first, Concat(": -n 1 ", HALFTONE_BINARY_DIR, "/", second));
}

TEST_F(Job, OfTwoVersionsNamesTheRankAndBoth) {
  const Result same = StartPair("tests/train_once", "tests/train_once");
  EXPECT_EQ(same.status, 0) << same.output;
  EXPECT_THAT(same.output, AllOf(HasSubstr("rank 0: trained"), HasSubstr("rank 1: trained")));
  const Result job = StartPair("tests/train_once", "tests/train_once_of_0_0_9");
  EXPECT_NE(job.status, 0);
  // Both ranks say the same; MPI may end one before it has.
  EXPECT_THAT(job.output,
              HasSubstr(Concat("rank 1: graph @line: the version of Halftone: 0.0.9, of rank 0 ",
                               Version(), "; expected the same program on all ranks")));
  EXPECT_THAT(job.output, Not(HasSubstr("trained")));
}

// A variable of the environment while it lives.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Setting() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Init, WithoutMpiSaysWhatIsMissing) {
  const Setting rank("OMPI_COMM_WORLD_RANK", "2"), size("OMPI_COMM_WORLD_SIZE", "4");
  const Setting module("HALFTONE_MPI_LIBRARY", "/nowhere/libhalftone_mpi.so");
  EXPECT_TRUE(distributed::IsForgotten());
  const absl::Status status = distributed::Init();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(
      Message(status),
      HasSubstr("distributed::Init: this process was started as rank 2 of 4: cannot load the "
                "MPI module: /nowhere/libhalftone_mpi.so"));
  EXPECT_FALSE(distributed::IsInitialized());
  EXPECT_EQ(distributed::Size(), 1);
}

TEST(Init, RefusesATimeoutThatIsNone) {
  EXPECT_TRUE(absl::IsInvalidArgument(distributed::Init({.timeout_seconds = 0})));
  const Setting timeout("HALFTONE_DISTRIBUTED_TIMEOUT", "soon");
  const absl::Status status = distributed::Init();
  EXPECT_THAT(Message(status), HasSubstr("HALFTONE_DISTRIBUTED_TIMEOUT=soon"));
}

}  // namespace
}  // namespace halftone::testing
