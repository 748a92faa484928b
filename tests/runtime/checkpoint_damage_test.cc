// Checkpoints from a hostile or broken world: each gives one error, and memory in proportion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "halftone/core/philox.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/proto/checkpoint.pb.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::runtime {
namespace {

using ::halftone::testing::Bytes;
using ::halftone::testing::MemoryDir;
using ::halftone::testing::TempDir;
using ::halftone::testing::WriteBytes;
using ::testing::HasSubstr;

template <typename T>
std::string Raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

uint32_t CrcOf(const std::string& bytes) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

// Damages a small file of two tensors, one of them with two names, and metadata.
class CheckpointDamage : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = dir_.Path("c");
    Checkpoint checkpoint;
    checkpoint.tensors["a"] = Tensor::Of(DType::kF32, {2}, {1, 2});
    checkpoint.tensors["b"] = Tensor::Of(DType::kBool, {3}, {1, 0, 1});
    checkpoint.tensors["z"] = checkpoint.tensors["a"];
    checkpoint.metadata = {{"k", "v"}};
    ASSERT_TRUE(WriteCheckpoint(path_, checkpoint).ok());
    good_ = Bytes(path_);
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, good_.data() + 16, sizeof(header_bytes));
    ASSERT_TRUE(header_.ParseFromString(good_.substr(32, header_bytes)));
    ASSERT_EQ(header_.tensors_size(), 2);
    a_ = header_.mutable_tensors(0);
    b_ = header_.mutable_tensors(1);
  }

  absl::Status Read(const std::string& bytes) {
    WriteBytes(path_, bytes);
    return ReadCheckpoint(path_).status();
  }

  // The file with header_ in place of its header, its checksum right, and `behind` behind it; file
  // bytes are filled up so that the header's offsets stay right.
  std::string WithHeader(const std::string& behind = "") {
    const std::string text = header_.SerializeAsString();
    std::string tensors = good_.substr(128) + behind;
    std::string padding(text.size() < 96 ? 96 - text.size() : 0, '\0');
    const uint64_t size = 32 + text.size() + padding.size() + tensors.size();
    return "HTCKPT\r\n" + Raw(uint32_t{1}) + Raw(CrcOf(text)) + Raw(uint64_t{text.size()}) +
           Raw(size) + text + padding + tensors;
  }

  void ExpectError(absl::StatusCode code, const std::string& text, const std::string& behind = "") {
    const AllocatorStats before = BufferStats();
    const absl::Status status = Read(WithHeader(behind));
    EXPECT_EQ(status.code(), code) << text;
    EXPECT_EQ(Message(status), path_ + ": " + text);
    // What a file can make us take is bounded by its size.
    EXPECT_LE(BufferStats().peak_bytes, std::max<int64_t>(before.peak_bytes, 4096)) << text;
  }
  void ExpectInvalid(const std::string& text, const std::string& behind = "") {
    ExpectError(absl::StatusCode::kInvalidArgument, text, behind);
  }

  const TempDir dir_{MemoryDir()};
  std::string path_, good_;
  CheckpointProto header_;
  StoredTensorProto *a_ = nullptr, *b_ = nullptr;
};

TEST_F(CheckpointDamage, TheFixtureIsRight) {
  ASSERT_EQ(a_->offset(), 128u);
  ASSERT_EQ(b_->offset(), 192u);
  ASSERT_EQ(good_.size(), 195u);
  EXPECT_EQ(WithHeader(), good_);
  EXPECT_TRUE(Read(WithHeader()).ok());
}

TEST_F(CheckpointDamage, TruncatedAnywhere) {
  for (size_t size = 0; size < good_.size(); ++size) {
    const absl::Status status = Read(good_.substr(0, size));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_EQ(Message(status),
              size < 32 ? Concat(path_, ": has ", size, " bytes; a checkpoint has at least 32")
                        : Concat(path_, ": has ", size, " bytes; expected 195"));
  }
}

TEST_F(CheckpointDamage, Extended) {
  EXPECT_EQ(Message(Read(good_ + '\0')), path_ + ": has 196 bytes; expected 195");
}

TEST_F(CheckpointDamage, EveryBitFlipped) {
  const size_t header_end = 8 * (32 + header_.ByteSizeLong());
  for (size_t i = 0; i < good_.size() * 8; ++i) {
    std::string bytes = good_;
    bytes[i / 8] = static_cast<char>(bytes[i / 8] ^ (1 << i % 8));
    const absl::Status status = Read(bytes);
    EXPECT_FALSE(status.ok()) << "bit " << i;
    const char* expected = i < 64           ? ": is not a checkpoint"
                           : i < 96         ? ": is a checkpoint of version "
                           : i < 128        ? ": header has checksum "
                           : i < 192        ? ": header"
                           : i < 256        ? ": has 195 bytes; expected "
                           : i < header_end ? ": header has checksum "
                           : i < 8 * 128    ? ": the padding before tensor \"a\" is not 0"
                           : i < 8 * 136    ? ": tensor \"a\" has checksum "
                           : i < 8 * 192    ? ": the padding before tensor \"b\" is not 0"
                                            : ": tensor \"b\" has checksum ";
    EXPECT_EQ(Message(status).rfind(path_ + expected, 0), 0u) << "bit " << i << ": " << status;
  }
}

TEST_F(CheckpointDamage, AnotherVersion) {
  std::string bytes = good_;
  bytes[8] = 2;
  const absl::Status status = Read(bytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), path_ + ": is a checkpoint of version 2; this build reads version 1");
  EXPECT_EQ(Message(Read("\x89PNG\r\n" + good_.substr(6))), path_ + ": is not a checkpoint");
}

TEST_F(CheckpointDamage, AHeaderThatIsNone) {
  std::string bytes = good_;
  const uint64_t size = UINT64_MAX;
  std::memcpy(&bytes[16], &size, sizeof(size));
  EXPECT_EQ(Message(Read(bytes)),
            path_ + ": header of 18446744073709551615 bytes in a file of 195");
  const std::string text = "\x0a\x7f";  // a tensor of 127 bytes, of which none follow
  EXPECT_EQ(Message(Read("HTCKPT\r\n" + Raw(uint32_t{1}) + Raw(CrcOf(text)) + Raw(uint64_t{2}) +
                         Raw(uint64_t{34}) + text)),
            path_ + ": header is not a serialised CheckpointProto");
}

TEST_F(CheckpointDamage, Names) {
  a_->clear_names();
  ExpectInvalid("a tensor has no name");
  a_->add_names("");
  ExpectInvalid("tensor \"\" has 0 bytes; expected 1 to 1048576");
  a_->set_names(0, "b");
  ExpectInvalid("tensor \"b\" occurs twice");
  a_->set_names(0, "a");
  a_->add_names("a");
  ExpectInvalid("tensor \"a\" occurs twice");
}

TEST_F(CheckpointDamage, Metadata) {
  *header_.add_metadata() = header_.metadata(0);
  ExpectInvalid("metadata key \"k\" occurs twice");
  header_.mutable_metadata(1)->set_key("");
  ExpectInvalid("metadata key \"\" has 0 bytes; expected 1 to 1048576");
}

TEST_F(CheckpointDamage, Types) {
  a_->set_dtype(static_cast<DTypeProto>(99));
  ExpectInvalid("tensor \"a\": unknown dtype number 99");
  a_->set_dtype(DTYPE_UNSPECIFIED);
  ExpectInvalid("tensor \"a\": unknown dtype number 0");
  a_->set_dtype(DTYPE_F64);
  ExpectInvalid("tensor \"a\": f64[2] with 8 bytes; expected 16");
}

TEST_F(CheckpointDamage, Shapes) {
  a_->set_dims(0, -2);
  ExpectInvalid("tensor \"a\": shape [-2] has extent -2; expected 0 or more");
  a_->set_dims(0, int64_t{1} << 62);
  ExpectInvalid("tensor \"a\": shape [4611686018427387904] has more than 1099511627776 elements");
  a_->set_dims(0, int64_t{1} << 40);
  ExpectInvalid("tensor \"a\": f32[1099511627776] with 8 bytes; expected 4398046511104");
  a_->set_bytes(uint64_t{1} << 42);
  ExpectInvalid("tensor \"a\": ends at byte 4398046511232 of 195");
  a_->clear_dims();
  for (int i = 0; i < 9; ++i) a_->add_dims(1);
  ExpectInvalid("tensor \"a\": shape [1,1,1,1,1,1,1,1,1] has rank 9; expected at most 8");
}

TEST_F(CheckpointDamage, Places) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{64}, uint64_t{129}, uint64_t{192},
                                uint64_t{1} << 40, UINT64_MAX - 7, UINT64_MAX}) {
    a_->set_offset(offset);
    ExpectInvalid(Concat("tensor \"a\": begins at byte ", offset,
                         "; expected 128, right behind what is before it"));
  }
  a_->set_offset(128);
  b_->set_offset(128);
  ExpectInvalid("tensor \"b\": begins at byte 128; expected 192, right behind what is before it");
  b_->set_offset(256);
  ExpectInvalid("tensor \"b\": begins at byte 256; expected 192, right behind what is before it");
  b_->set_offset(192);
  ExpectInvalid("1 bytes behind the last tensor; expected none", "x");
  b_->set_dims(0, 4);
  b_->set_bytes(4);
  ExpectInvalid("tensor \"b\": ends at byte 196 of 195");
}

TEST_F(CheckpointDamage, ABoolIsZeroOrOne) {
  std::string bytes = good_;
  bytes[192] = 2;
  b_->set_crc32(CrcOf(bytes.substr(192)));
  good_ = bytes;
  ExpectError(absl::StatusCode::kDataLoss, "tensor \"b\" holds a byte that is not 0 or 1");
}

// A file of a few kilobytes whose header claims all it can.
TEST_F(CheckpointDamage, ManyLargeClaimsTakeNoMemory) {
  for (int i = 0; i < 100; ++i) {
    StoredTensorProto* tensor = header_.add_tensors();
    tensor->add_names(Concat("t", i));
    tensor->set_dtype(DTYPE_F64);
    tensor->add_dims(int64_t{1} << 40);
    tensor->set_bytes(uint64_t{1} << 43);
    tensor->set_offset(256);
  }
  const int64_t allocations = BufferStats().allocations;
  const absl::Status status = Read(WithHeader());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(BufferStats().allocations, allocations);
}

// Headers with a right checksum and random bytes changed, put in or left out: every one is read or
// refused, never a crash or a large allocation.
TEST_F(CheckpointDamage, RandomHeaders) {
  PhiloxStream random(7);
  const std::string text = header_.SerializeAsString();
  int read = 0;
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string changed = text;
    for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
      const size_t at = random.Below(changed.size());
      const char byte = static_cast<char>(random.Below(256));
      switch (random.Below(3)) {
        case 0:
          changed[at] = byte;
          break;
        case 1:
          changed.insert(at, 1, byte);
          break;
        default:
          changed.erase(at, 1);
      }
    }
    changed.resize(std::min<size_t>(changed.size(), 96));
    const std::string padding(96 - changed.size(), '\0');
    const uint64_t size = good_.size();
    const absl::Status status =
        Read("HTCKPT\r\n" + Raw(uint32_t{1}) + Raw(CrcOf(changed)) + Raw(uint64_t{changed.size()}) +
             Raw(size) + changed + padding + good_.substr(128));
    ++(status.ok() ? read : refused);
  }
  EXPECT_GT(read, 0) << "some changes only touch a name";
  EXPECT_GT(refused, 1000);
  EXPECT_LE(BufferStats().peak_bytes, 1 << 16);
}

TEST_F(CheckpointDamage, OutOfMemoryIsAnError) {
  SetBufferLimit(BufferStats().live_bytes + 4);
  const absl::Status status = Read(good_);
  SetBufferLimit(0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(status), HasSubstr(path_ + ": tensor f32[2]: "));
}

}  // namespace
}  // namespace halftone::runtime
