// A folder that all ranks of a job share in a test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "halftone/distributed/communicator.h"
#include "halftone/distributed/distributed.h"

namespace halftone::nn {

class RankFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string text = (std::filesystem::temp_directory_path() / "halftone_ranks_XXXXXX").string();
    if (distributed::Rank() == 0) {
      ASSERT_NE(mkdtemp(text.data()), nullptr);
    }
    ASSERT_TRUE(distributed::World().Broadcast(text.data(), text.size(), 0).ok());
    folder_ = text;
  }
  void TearDown() override {
    ASSERT_TRUE(distributed::Barrier().ok());
    if (distributed::Rank() == 0) std::filesystem::remove_all(folder_);
  }
  std::filesystem::path folder_;
};

}  // namespace halftone::nn
