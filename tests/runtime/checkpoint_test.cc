#include "halftone/graph/runtime/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

#include "halftone/proto/checkpoint.pb.h"
#include "halftone/tests/support/temp_dir.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::runtime {
namespace {

using ::halftone::testing::Bytes;
using ::halftone::testing::RandomTensor;
using ::halftone::testing::TempDir;
using ::halftone::testing::WriteBytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Checkpoint Sample(double value) {
  Checkpoint checkpoint;
  checkpoint.tensors["w"] = Tensor::Of(DType::kF32, {2}, {value, -1});
  checkpoint.metadata["epoch"] = "3";
  return checkpoint;
}

void ExpectEqual(const Checkpoint& got, const Checkpoint& expected) {
  EXPECT_EQ(got.metadata, expected.metadata);
  ASSERT_EQ(got.tensors.size(), expected.tensors.size());
  for (const auto& [name, tensor] : expected.tensors) {
    ASSERT_EQ(got.tensors.count(name), 1u) << name;
    EXPECT_TRUE(BitEqual(got.tensors.at(name), tensor)) << name;
  }
}

template <typename T>
T At(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// Bit by bit, from the definition of CRC-32: reflected polynomial 0xEDB88320.
uint32_t Crc(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

TEST(Checkpoint, GivesBackEveryTypeAndShape) {
  const TempDir dir;
  Checkpoint checkpoint;
  const Shape shapes[] = {{}, {0}, {1}, {3, 5}, {2, 0, 4}, {1, 2, 1, 2, 1, 2, 1, 3}};
  for (int d = 0; d < kNumDTypes; ++d) {
    for (const Shape& shape : shapes) {
      const auto dtype = static_cast<DType>(d);
      checkpoint.tensors[Concat(Name(dtype), shape)] =
          RandomTensor(dtype, shape, /*seed=*/static_cast<uint64_t>(d), 0, 100);
    }
  }
  Tensor special = Tensor::Of(DType::kF32, {4}, {-0.0, 0x1p-149, INFINITY, 0});
  const uint32_t signalling_nan = 0x7f800001;
  std::memcpy(special.data<float>() + 3, &signalling_nan, sizeof(signalling_nan));
  checkpoint.tensors["special"] = special;
  ASSERT_TRUE(WriteCheckpoint(dir.Path("c"), checkpoint).ok());
  const auto read = ReadCheckpoint(dir.Path("c"));
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectEqual(*read, checkpoint);
}

TEST(Checkpoint, MayBeEmptyAndHoldAnyBytes) {
  const TempDir dir;
  ASSERT_TRUE(WriteCheckpoint(dir.Path("c"), {}).ok());
  ExpectEqual(*ReadCheckpoint(dir.Path("c")), {});
  Checkpoint checkpoint;
  checkpoint.tensors[std::string("\0\n\xff", 3)] = Tensor::Scalar(DType::kI64, 7);
  checkpoint.metadata[std::string("k\0", 2)] = std::string(100000, '\0') + "\xfe";
  ASSERT_TRUE(WriteCheckpoint(dir.Path("c"), checkpoint).ok());
  ExpectEqual(*ReadCheckpoint(dir.Path("c")), checkpoint);
}

TEST(Checkpoint, StoresTiedTensorsOnce) {
  const TempDir dir;
  Checkpoint checkpoint;
  const Tensor shared = Tensor::Full(DType::kF32, {1000}, 2);
  checkpoint.tensors = {{"a", shared}, {"b", Tensor::Full(DType::kF32, {1000}, 2)}, {"z", shared}};
  ASSERT_TRUE(WriteCheckpoint(dir.Path("c"), checkpoint).ok());
  EXPECT_GE(Bytes(dir.Path("c")).size(), 8000u);
  EXPECT_LT(Bytes(dir.Path("c")).size(), 9000u);
  const auto read = ReadCheckpoint(dir.Path("c"));
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectEqual(*read, checkpoint);
  EXPECT_EQ(read->tensors.at("a").raw(), read->tensors.at("z").raw());
  EXPECT_NE(read->tensors.at("a").raw(), read->tensors.at("b").raw());
  // Another shape over the same memory is another tensor.
  checkpoint.tensors["z"] = shared.Reshape({10, 100});
  ASSERT_TRUE(WriteCheckpoint(dir.Path("c"), checkpoint).ok());
  ExpectEqual(*ReadCheckpoint(dir.Path("c")), checkpoint);
}

// Reads the file as checkpoint.proto describes it.
TEST(Checkpoint, HasTheDocumentedForm) {
  ASSERT_EQ(Crc("123456789"), 0xcbf43926u) << "the check value of CRC-32";
  const TempDir dir;
  Checkpoint checkpoint = Sample(0.5);
  checkpoint.tensors["v"] = Tensor::Of(DType::kU8, {3}, {1, 2, 3});
  ASSERT_TRUE(WriteCheckpoint(dir.Path("c"), checkpoint).ok());
  const std::string bytes = Bytes(dir.Path("c"));
  ASSERT_GE(bytes.size(), 32u);
  EXPECT_EQ(bytes.substr(0, 8), "HTCKPT\r\n");
  EXPECT_EQ(At<uint32_t>(bytes, 8), 1u);
  const std::string header_text = bytes.substr(32, At<uint64_t>(bytes, 16));
  EXPECT_EQ(At<uint32_t>(bytes, 12), Crc(header_text));
  EXPECT_EQ(At<uint64_t>(bytes, 24), bytes.size());
  CheckpointProto header;
  ASSERT_TRUE(header.ParseFromString(header_text));
  ASSERT_EQ(header.tensors_size(), 2);
  const StoredTensorProto& v = header.tensors(0);
  const StoredTensorProto& w = header.tensors(1);
  EXPECT_EQ(v.names(0), "v");
  EXPECT_EQ(v.dtype(), DTYPE_U8);
  EXPECT_EQ(w.names(0), "w");
  EXPECT_EQ(w.dtype(), DTYPE_F32);
  EXPECT_EQ(w.dims_size(), 1);
  EXPECT_EQ(w.dims(0), 2);
  for (const StoredTensorProto* tensor : {&v, &w}) {
    EXPECT_EQ(tensor->offset() % 64, 0u);
    EXPECT_EQ(tensor->crc32(), Crc(bytes.substr(tensor->offset(), tensor->bytes())));
  }
  EXPECT_EQ(bytes.substr(v.offset(), v.bytes()), "\1\2\3");
  EXPECT_EQ(bytes.substr(w.offset()), std::string("\0\0\0\x3f\0\0\x80\xbf", 8));
  EXPECT_EQ(header.metadata(0).key(), "epoch");
  EXPECT_EQ(header.metadata(0).value(), "3");
}

TEST(Checkpoint, EqualCheckpointsAreEqualFiles) {
  const TempDir dir;
  ASSERT_TRUE(WriteCheckpoint(dir.Path("a"), Sample(1)).ok());
  ASSERT_TRUE(WriteCheckpoint(dir.Path("b"), Sample(1)).ok());
  EXPECT_EQ(Bytes(dir.Path("a")), Bytes(dir.Path("b")));
}

TEST(Checkpoint, RefusesWhatItCannotStore) {
  const TempDir dir;
  const std::string path = dir.Path("c");
  const auto expect = [&](const Checkpoint& checkpoint, const std::string& text) {
    const absl::Status status = WriteCheckpoint(path, checkpoint);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(status), path + ": " + text);
  };
  expect({{{"w", Tensor()}}, {}}, "tensor \"w\" is an undefined tensor");
  expect({{{"", Tensor::Scalar(DType::kF32, 1)}}, {}},
         "tensor \"\" has 0 bytes; expected 1 to 1048576");
  expect({{}, {{std::string((1 << 20) + 1, 'k'), ""}}},
         "metadata key \"" + std::string(80, 'k') + "\" has 1048577 bytes; expected 1 to 1048576");
  const absl::Status large = WriteCheckpoint(path, {{}, {{"k", std::string(1 << 26, 'v')}}});
  EXPECT_EQ(large.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(large), ::testing::StartsWith(path + ": names and metadata take 67108"));
  EXPECT_THAT(Message(large), HasSubstr(" bytes; expected at most 67108864"));
  EXPECT_THAT(dir.Names(), ElementsAre());
}

TEST(ReadLatestCheckpoint, FallsBackAndSaysSo) {
  const TempDir dir;
  const std::string path = dir.Path("c");
  std::string note = "old";
  EXPECT_EQ(ReadLatestCheckpoint(path, &note).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteCheckpoint(path, Sample(1)).ok());
  ASSERT_TRUE(WriteCheckpoint(path, Sample(2)).ok());
  auto latest = ReadLatestCheckpoint(path, &note);
  ASSERT_TRUE(latest.ok()) << latest.status();
  ExpectEqual(*latest, Sample(2));
  EXPECT_EQ(note, "");

  const std::string good = Bytes(path);
  WriteBytes(path, good.substr(0, good.size() - 1));
  latest = ReadLatestCheckpoint(path, &note);
  ASSERT_TRUE(latest.ok()) << latest.status();
  ExpectEqual(*latest, Sample(1));
  EXPECT_EQ(note, Concat(path, ": has ", good.size() - 1, " bytes; expected ", good.size(),
                         "; read ", path, ".previous instead"));

  std::filesystem::remove(path);
  latest = ReadLatestCheckpoint(path, &note);
  ASSERT_TRUE(latest.ok()) << latest.status();
  ExpectEqual(*latest, Sample(1));
  EXPECT_EQ(note, Concat(path, ": no such file or directory; read ", path, ".previous instead"));

  // Nothing to fall back on: what is there and damaged is never "not found".
  WriteBytes(path + ".previous", "x");
  absl::Status status = ReadLatestCheckpoint(path, &note).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Message(status), path + ".previous: has 1 bytes; a checkpoint has at least 32");
  WriteBytes(path, "xy");
  status = ReadLatestCheckpoint(path, &note).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Message(status), path + ": has 2 bytes; a checkpoint has at least 32; " + path +
                                 ".previous: has 1 bytes; a checkpoint has at least 32");
  EXPECT_EQ(note, "");
}

// The damaged file is the one that must go, whatever the next save does.
TEST(ReadLatestCheckpoint, ASaveOverADamagedFileIsReadAgain) {
  const TempDir dir;
  const std::string path = dir.Path("c");
  ASSERT_TRUE(WriteCheckpoint(path, Sample(1)).ok());
  WriteBytes(path, "damaged");
  ASSERT_TRUE(WriteCheckpoint(path, Sample(2)).ok());
  std::string note;
  ExpectEqual(*ReadLatestCheckpoint(path, &note), Sample(2));
  EXPECT_EQ(note, "");
}

TEST(Checkpoint, AFullDiskLosesNothing) {
  const TempDir dir;
  const std::string path = dir.Path("c");
  ASSERT_TRUE(WriteCheckpoint(path, Sample(1)).ok());
  ASSERT_TRUE(WriteCheckpoint(path, Sample(2)).ok());
  Checkpoint large;
  large.tensors["w"] = Tensor::Zeros(DType::kF32, {100000});
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {100000, 100000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status status = WriteCheckpoint(path, large);
    _exit(Message(status) == path + ".writing: cannot write: File too large" ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(dir.Names(), ElementsAre("c", "c.previous"));
  ExpectEqual(*ReadCheckpoint(path), Sample(2));
  ExpectEqual(*ReadCheckpoint(path + ".previous"), Sample(1));
}

TEST(Checkpoint, NamesAFolderThatIsNone) {
  const TempDir dir;
  WriteBytes(dir.Path("f"), "");
  const absl::Status status = WriteCheckpoint(dir.Path("f/c"), Sample(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(status), dir.Path("f/c.writing") + ": no such file or directory");
  EXPECT_EQ(Message(ReadCheckpoint(dir.path()).status()), dir.path() + ": is not a regular file");
}

TEST(CheckpointLock, HasOneHolderAndLeavesNothingBehind) {
  const TempDir dir;
  {
    auto lock = CheckpointLock::Acquire(dir.Path("c"));
    ASSERT_TRUE(lock.ok()) << lock.status();
    const CheckpointLock kept = *std::move(lock);
    EXPECT_EQ(CheckpointLock::Acquire(dir.Path("c")).status().code(),
              absl::StatusCode::kFailedPrecondition);
    ASSERT_TRUE(WriteCheckpoint(dir.Path("c"), Sample(1)).ok());
  }
  EXPECT_THAT(dir.Names(), ElementsAre("c"));
  EXPECT_TRUE(CheckpointLock::Acquire(dir.Path("c")).ok());
}

TEST(CheckpointLock, SeesThatThePathCannotBeWritten) {
  const TempDir dir;
  ASSERT_EQ(mkdir(dir.Path("c").c_str(), 0700), 0);
  const absl::Status status = CheckpointLock::Acquire(dir.Path("c")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), dir.Path("c") + ": is not a regular file");
  EXPECT_EQ(Message(CheckpointLock::Acquire(dir.Path("none/c")).status()),
            dir.Path("none/c.lock") + ": no such file or directory");
}

}  // namespace
}  // namespace halftone::runtime
