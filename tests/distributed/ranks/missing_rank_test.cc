// A rank that hangs, on a device whose work waits for it. The job ends by it: tests/CMakeLists.txt runs this
// alone, and looks for what it prints.
#include <unistd.h>

#include "halftone/tests/distributed/ranks/rank_models.h"

namespace halftone::nn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MissingRank, IsNamedOnceTheTimeIsOver) {
  if (std::getenv("HALFTONE_RANK_HANGS") == nullptr) GTEST_SKIP() << "in a job of its own";
  RankModel model(Mlp(), true);
  const std::vector<Tensor> in = OwnPart(BatchOf({8 * Size(), 12}, 0));
  for (int step = 0; step < 3; ++step) EXPECT_TRUE(StepStatus(model.graph, in).ok());
  if (Rank() == 1) sleep(600);  // the end of rank 0 ends it
  const absl::Status status = StepStatus(model.graph, in);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("device cuda:0: all_reduce: rank 0 has waited 2 s for the device of "
                              "rank 1; expected every rank at the same step"),
                    HasSubstr("HALFTONE_DISTRIBUTED_TIMEOUT")));
  // From then on there is nothing that could be trusted.
  EXPECT_FALSE(StepStatus(model.graph, in).ok());
  EXPECT_FALSE(model.graph.state_dict().ok());
  EXPECT_FALSE(model.graph.save_checkpoint("/nowhere/state").ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(distributed::Barrier()));
  if (!HasFailure()) std::printf("the missing rank is found\n");
}

}  // namespace
}  // namespace halftone::nn
