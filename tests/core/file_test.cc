#include "halftone/core/io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "halftone/core/io/file_replacement.h"

namespace halftone::io {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    dir_ = fs::path(::testing::TempDir()) / Concat("file_", test->name(), "_", getpid());
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string Path(const std::string& name) const { return (dir_ / name).string(); }

  fs::path dir_;
};

TEST_F(FileTest, ReadsWhatWasWritten) {
  for (const std::string& contents :
       {std::string(), std::string("a\0b\n", 4), std::string(size_t{3} << 20, 'x')}) {
    ASSERT_TRUE(WriteFileAtomically(Path("f"), contents).ok());
    const auto read = ReadFile(Path("f"), int64_t{4} << 20);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, contents);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 1);
}

TEST_F(FileTest, ReadErrors) {
  const auto missing = ReadFile(Path("none"), 10).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(missing), Path("none") + ": no such file or directory");
  EXPECT_EQ(Message(ReadFile(dir_.string(), 10).status()),
            dir_.string() + ": is not a regular file");
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadFile(Path("pipe"), 10).status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "12345").ok());
  const auto large = ReadFile(Path("f"), 4).status();
  EXPECT_EQ(large.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(large), Path("f") + ": has 5 bytes; expected at most 4");
}

TEST_F(FileTest, AFailedWriteLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "old").ok());
  fs::create_directories(Path("dir/inside"));
  EXPECT_EQ(WriteFileAtomically(Path("dir"), "new").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteFileAtomically(Path("no/f"), "new").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(*ReadFile(Path("f"), 10), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 2);
}

// A temporary file renamed over /dev/null would end the machine's day.
TEST_F(FileTest, OnlyRegularFilesAreReplaced) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  fs::create_symlink("elsewhere", dir_ / "link");
  fs::create_directory(dir_ / "folder");
  for (const char* name : {"pipe", "link", "folder"}) {
    const absl::Status status = WriteFileAtomically(Path(name), "x");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(status), Path(name) + ": is not a regular file");
  }
  EXPECT_TRUE(fs::is_fifo(dir_ / "pipe"));
  EXPECT_TRUE(fs::is_symlink(dir_ / "link"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 3);
}

TEST_F(FileTest, PathsEndWhereTheyEnd) {
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "kept").ok());
  const std::string path = Path("f") + std::string("\0g", 2);
  for (const absl::Status& status : {WriteFileAtomically(path, "x"), ReadFile(path, 10).status(),
                                     FileReplacement::Begin(path).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(status), "path with a NUL byte behind \"" + Path("f") +
                                   "\"; expected none: the system would read it as the end");
  }
  EXPECT_EQ(*ReadFile(Path("f"), 10), "kept");
}

TEST(DirectoryOf, IsThePartBeforeTheLastSlash) {
  EXPECT_EQ(DirectoryOf("a/b/c.txt"), "a/b");
  EXPECT_EQ(DirectoryOf("c.txt"), ".");
  EXPECT_EQ(DirectoryOf("/c.txt"), "/");
}

}  // namespace
}  // namespace halftone::io
