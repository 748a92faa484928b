#include "halftone/core/io/file_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "halftone/core/strings.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::io {
namespace {

using ::halftone::testing::TempDir;
using ::halftone::testing::WriteBytes;
using ::testing::IsEmpty;

// A process that holds the lock of `path` until it is killed; it has it when this returns.
pid_t StartHolder(const std::string& path) {
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = FileLock::Acquire(path);
    const char word = lock.ok() ? 'y' : 'n';
    if (write(ready[1], &word, 1) != 1) _exit(1);
    while (true) pause();
  }
  char word = 0;
  EXPECT_EQ(read(ready[0], &word, 1), 1);
  EXPECT_EQ(word, 'y');
  close(ready[0]);
  close(ready[1]);
  return child;
}

void Kill(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(FileLock, OneHolder) {
  const TempDir dir;
  const std::string path = dir.Path("run");
  const pid_t child = StartHolder(path);
  const auto second = FileLock::Acquire(path);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(second.status()), Concat(path, ": process ", child, " works on it; expected ",
                                             "another name, or that process to end"));
  EXPECT_TRUE(FileLock::Acquire(dir.Path("other")).ok());
  Kill(child);
  EXPECT_TRUE(FileLock::Acquire(path).ok()) << "the holder is gone, its file is not";
}

TEST(FileLock, LeavesNothingBehind) {
  const TempDir dir;
  {
    const auto lock = FileLock::Acquire(dir.Path("run"));
    ASSERT_TRUE(lock.ok());
    EXPECT_FALSE(FileLock::Acquire(dir.Path("run")).ok()) << "nor twice in one process";
  }
  EXPECT_THAT(dir.Names(), IsEmpty());
  FileLock kept;
  {
    auto lock = FileLock::Acquire(dir.Path("run"));
    ASSERT_TRUE(lock.ok());
    kept = *std::move(lock);
  }
  EXPECT_FALSE(FileLock::Acquire(dir.Path("run")).ok()) << "it was moved, not ended";
}

TEST(FileLock, WhatIsNoLockFile) {
  const TempDir dir;
  ASSERT_EQ(mkdir(dir.Path("run.lock").c_str(), 0777), 0);
  EXPECT_EQ(Message(FileLock::Acquire(dir.Path("run")).status()),
            dir.Path("run.lock") + ": is not a regular file");
  EXPECT_EQ(FileLock::Acquire(dir.Path("no/run")).status().code(), absl::StatusCode::kNotFound);
  WriteBytes(dir.Path("text.lock"), "somebody's text, without a lock on it");
  EXPECT_TRUE(FileLock::Acquire(dir.Path("text")).ok());
}

}  // namespace
}  // namespace halftone::io
