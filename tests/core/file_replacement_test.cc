#include "halftone/core/io/file_replacement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstddef>

#include "halftone/tests/support/temp_dir.h"

namespace halftone::io {
namespace {

using ::halftone::testing::Bytes;
using ::halftone::testing::TempDir;
using ::halftone::testing::WriteBytes;
using ::testing::ElementsAre;

absl::Status Replace(const std::string& path, const std::string& contents) {
  HT_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path));
  HT_RETURN_IF_ERROR(file.Write(contents.data(), contents.size()));
  return file.Commit();
}

TEST(FileReplacement, KeepsTheVersionBefore) {
  const TempDir dir;
  const std::string path = dir.Path("f");
  ASSERT_TRUE(Replace(path, "one").ok());
  EXPECT_THAT(dir.Names(), ElementsAre("f"));
  ASSERT_TRUE(Replace(path, "two").ok());
  ASSERT_TRUE(Replace(path, "three").ok());
  EXPECT_THAT(dir.Names(), ElementsAre("f", "f.previous"));
  EXPECT_EQ(Bytes(path), "three");
  EXPECT_EQ(Bytes(PreviousPath(path)), "two");
}

TEST(FileReplacement, WithoutCommitNothingChanges) {
  const TempDir dir;
  const std::string path = dir.Path("f");
  ASSERT_TRUE(Replace(path, "one").ok());
  {
    auto file = FileReplacement::Begin(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Write("two", 3).ok());
    EXPECT_EQ(Bytes(path), "one");
    EXPECT_THAT(dir.Names(), ElementsAre("f", "f.writing"));
  }
  EXPECT_EQ(Bytes(path), "one");
  EXPECT_THAT(dir.Names(), ElementsAre("f"));
}

TEST(FileReplacement, ReusesWhatAKilledWriterLeft) {
  const TempDir dir;
  const std::string path = dir.Path("f");
  WriteBytes(path, "one");
  WriteBytes(path + ".writing", "a long torn piece of a file");
  WriteBytes(path + ".replaced", "zero");
  ASSERT_TRUE(Replace(path, "two").ok());
  EXPECT_THAT(dir.Names(), ElementsAre("f", "f.previous"));
  EXPECT_EQ(Bytes(path), "two");
  EXPECT_EQ(Bytes(PreviousPath(path)), "one");
}

TEST(FileReplacement, TwoNamesOfOneFileAreNoTrap) {
  const TempDir dir;
  const std::string path = dir.Path("f");
  WriteBytes(path, "one");
  ASSERT_EQ(link(path.c_str(), PreviousPath(path).c_str()), 0);
  ASSERT_TRUE(Replace(path, "two").ok());
  EXPECT_THAT(dir.Names(), ElementsAre("f", "f.previous"));
  EXPECT_EQ(Bytes(path), "two");
  EXPECT_EQ(Bytes(PreviousPath(path)), "one");
}

TEST(FileReplacement, RefusesWhatIsNoRegularFile) {
  const TempDir dir;
  const std::string path = dir.Path("f");
  for (const char* suffix : {"", ".previous", ".writing", ".replaced"}) {
    ASSERT_EQ(mkdir((path + suffix).c_str(), 0700), 0);
    const absl::Status status = Replace(path, "two");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(status), path + suffix + ": is not a regular file");
    ASSERT_EQ(rmdir((path + suffix).c_str()), 0);
  }
  ASSERT_EQ(symlink("elsewhere", path.c_str()), 0);
  EXPECT_EQ(Message(Replace(path, "two")), path + ": is not a regular file");
  EXPECT_EQ(Message(Replace("/dev/full", "two")), "/dev/full: is not a regular file");
}

TEST(FileReplacement, RefusesAFolderThatIsAbsentOrAFile) {
  const TempDir dir;
  WriteBytes(dir.Path("f"), "one");
  for (const std::string& path : {dir.Path("no/g"), dir.Path("f/g")}) {
    const absl::Status status = Replace(path, "two");
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(Message(status), path + ".writing: no such file or directory");
  }
  EXPECT_THAT(dir.Names(), ElementsAre("f"));
}

TEST(FileReplacement, RefusesAReadOnlyFolder) {
  if (geteuid() == 0) {
    // Root may write to a folder of any mode; nobody may make files in /proc, where it is mounted.
    if (access("/proc/self", F_OK) != 0) GTEST_SKIP() << "root, and no /proc";
    const absl::Status status = Replace("/proc/halftone_test", "two");
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(Message(status).rfind("/proc/halftone_test.writing: ", 0), 0u) << status;
    return;
  }
  const TempDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 0500), 0);
  const absl::Status refused = Replace(dir.Path("f"), "two");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(refused), dir.Path("f.writing") + ": cannot create: Permission denied");
  ASSERT_EQ(chmod(dir.path().c_str(), 0700), 0);
}

TEST(FileReplacement, ASecondWriterIsRefused) {
  const TempDir dir;
  const std::string path = dir.Path("f");
  auto first = FileReplacement::Begin(path);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(first->Write("first", 5).ok());
  const absl::Status second = Replace(path, "second");
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(second), path + ".writing: another writer is at work on it");
  ASSERT_TRUE(first->Commit().ok());
  EXPECT_EQ(Bytes(path), "first");
  ASSERT_TRUE(Replace(path, "second").ok());
  EXPECT_EQ(Bytes(path), "second");
}

// A limit on file sizes stands for a full disk. The signal that the system sends behind the limit
// would end the child.
TEST(FileReplacement, F59AFullDiskLosesNothing) {
  const TempDir dir;
  const std::string path = dir.Path("f");
  ASSERT_TRUE(Replace(path, "zero").ok());
  ASSERT_TRUE(Replace(path, "one").ok());
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_DFL);
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status status = Replace(path, std::string(5000, 'x'));
    const bool right = status.code() == absl::StatusCode::kFailedPrecondition &&
                       Message(status) == path + ".writing: cannot write: File too large";
    _exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(dir.Names(), ElementsAre("f", "f.previous"));
  EXPECT_EQ(Bytes(path), "one");
  EXPECT_EQ(Bytes(PreviousPath(path)), "zero");
}

// From here on link() fails in this process as on a file system without links. False: the kernel
// has no such filter.
bool ForbidLinks() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_linkat, 1, 0),
#ifdef __NR_link
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_link, 0, 1),
#else
      BPF_STMT(BPF_JMP | BPF_JA, 1),
#endif
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(FileReplacement, KeepsTheVersionBeforeWithoutLinks) {
  const TempDir dir;
  const std::string path = dir.Path("f");
  ASSERT_TRUE(Replace(path, "one").ok());
  const pid_t child = fork();
  if (child == 0) {
    if (!ForbidLinks()) _exit(2);
    if (link(path.c_str(), dir.Path("g").c_str()) == 0) _exit(2);
    _exit(Replace(path, "two").ok() && Replace(path, "three").ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(dir.Names(), ElementsAre("f", "f.previous"));
  EXPECT_EQ(Bytes(path), "three");
  EXPECT_EQ(Bytes(PreviousPath(path)), "two");
}

// Writers that kill -9 ends anywhere, two at a time: what is found is always one whole version.
TEST(FileReplacement, KilledWritersLeaveWholeVersions) {
  const TempDir dir;
  const std::string path = dir.Path("f");
  ASSERT_TRUE(Replace(path, std::string(3000, 'a')).ok());
  const auto start_writer = [&](char fill) {
    const pid_t child = fork();
    if (child != 0) return child;
    // Enough to outlive the wait below, and to end should nobody end it.
    for (int i = 0; i < 100000; ++i) Replace(path, std::string(3000, fill)).IgnoreError();
    _exit(0);
  };
  bool replaced = false;
  for (int round = 0; round < 20; ++round) {
    const pid_t writers[] = {start_writer('b'), start_writer('c')};
    usleep(3000 + 700 * round);
    for (const pid_t writer : writers) {
      kill(writer, SIGKILL);
      waitpid(writer, nullptr, 0);
    }
    std::string found = Bytes(path);
    if (found.empty()) found = Bytes(PreviousPath(path));
    ASSERT_EQ(found.size(), 3000u) << round;
    EXPECT_EQ(found, std::string(3000, found[0])) << round;
    replaced |= found[0] != 'a';
  }
  EXPECT_TRUE(replaced) << "no writer came through";
  ASSERT_TRUE(Replace(path, "end").ok());
  EXPECT_THAT(dir.Names(), ElementsAre("f", "f.previous"));
}

}  // namespace
}  // namespace halftone::io
