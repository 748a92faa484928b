#include "halftone/core/cpu_count.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "halftone/tests/support/temp_dir.h"

namespace halftone {
namespace {

// Files below a folder of the test.
class CpuQuotaF16 : public ::testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    const std::string path = dir_.Path(file);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  std::optional<double> Quota() const { return CpuQuota(dir_.Path("cgroup"), dir_.Path("mount")); }
  const testing::TempDir dir_;
};

TEST_F(CpuQuotaF16, NoFilesNoQuota) { EXPECT_EQ(Quota(), std::nullopt); }

TEST_F(CpuQuotaF16, Version2) {
  Write("cgroup", "0::/docker/abc\n");
  Write("mount/docker/abc/cpu.max", "150000 100000\n");
  EXPECT_EQ(Quota(), 1.5);
  Write("mount/docker/abc/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota(), std::nullopt);
}

TEST_F(CpuQuotaF16, TheSmallestOfAllGroupsAbove) {
  Write("cgroup", "0::/a/b/c\n");
  Write("mount/a/cpu.max", "200000 100000\n");
  Write("mount/a/b/c/cpu.max", "400000 100000\n");
  EXPECT_EQ(Quota(), 2.0);
}

TEST_F(CpuQuotaF16, APathOfTheHostAndTheRootOfTheContainer) {
  Write("cgroup", "0::/kubepods/pod7\n");
  Write("mount/cpu.max", "25000 50000\n");
  EXPECT_EQ(Quota(), 0.5);
}

TEST_F(CpuQuotaF16, Version1) {
  Write("cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/x\n1:name=systemd:/\n");
  Write("mount/cpu,cpuacct/x/cpu.cfs_quota_us", "300000\n");
  Write("mount/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 3.0);
  Write("mount/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(Quota(), std::nullopt);
}

TEST_F(CpuQuotaF16, OtherControllersAndDamageSayNothing) {
  Write("cgroup", "no colons\n:\n3:memory:/x\n4:cpuacct:/x\n9:cpu:relative\n");
  Write("mount/memory/x/cpu.cfs_quota_us", "100\n");
  Write("mount/cpu.max", "many 100000\n");
  EXPECT_EQ(Quota(), std::nullopt);
  Write("cgroup", "0::/\n");
  Write("mount/cpu.max", "100000 0\n");
  EXPECT_EQ(Quota(), std::nullopt);
}

TEST(NoteOnThreads, F57OnlyWhereThereAreMoreThanCpus) {
  const int cpus = AvailableCpus();
  EXPECT_GE(cpus, 1);
  EXPECT_EQ(NoteOnThreads(cpus), "");
  EXPECT_EQ(NoteOnThreads(0), "");
  const std::string one_more = NoteOnThreads(cpus + 1);
  EXPECT_NE(one_more.find(" wait for each other: "), std::string::npos) << one_more;
}

}  // namespace
}  // namespace halftone
