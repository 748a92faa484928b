#include "halftone/core/io/idx.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace halftone::io {
namespace {

using FileBytes = std::string;

FileBytes BigEndian(uint64_t value, int size) {
  FileBytes bytes;
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
    bytes += static_cast<char>(value >> shift & 0xFF);
  }
  return bytes;
}

FileBytes Header(int type, const std::vector<uint32_t>& dims) {
  FileBytes bytes = FileBytes(2, '\0') + static_cast<char>(type) + static_cast<char>(dims.size());
  for (const uint32_t dim : dims) bytes += BigEndian(dim, 4);
  return bytes;
}

// 2 x 3 bytes 0, 50, ..., 250.
FileBytes SmallFile() {
  FileBytes bytes = Header(0x08, {2, 3});
  for (int i = 0; i < 6; ++i) bytes += static_cast<char>(50 * i);
  return bytes;
}

FileBytes Gzip(const FileBytes& plain) {
  z_stream z = {};
  EXPECT_EQ(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  FileBytes out(deflateBound(&z, plain.size()), '\0');
  FileBytes in = plain;
  z.next_in = reinterpret_cast<Bytef*>(in.data());
  z.avail_in = static_cast<uInt>(in.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

class IdxTest : public ::testing::Test {
 protected:
  IdxTest() {
    std::string name = (std::filesystem::temp_directory_path() / "halftone_idx_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
    path_ = dir_ + "/data.idx";
  }
  ~IdxTest() override { std::filesystem::remove_all(dir_); }

  void Write(const FileBytes& bytes) {
    std::ofstream out(path_, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  absl::StatusOr<Tensor> Parse(const FileBytes& bytes) {
    Write(bytes);
    return ReadIdx(path_);
  }
  // The message of the error without the path, which every message starts with.
  std::string Error(const absl::Status& status, absl::StatusCode code) {
    EXPECT_EQ(status.code(), code) << status;
    const std::string message = Message(status);
    EXPECT_EQ(message.rfind(path_ + ": ", 0), 0u) << message;
    return message.substr(std::min(message.size(), path_.size() + 2));
  }
  std::string ParseError(const FileBytes& bytes, absl::StatusCode code) {
    return Error(Parse(bytes).status(), code);
  }

  std::string dir_;
  std::string path_;
};

TEST_F(IdxTest, PlainAndGzip) {
  const std::vector<double> expected = {0, 50, 100, 150, 200, 250};
  for (const FileBytes& bytes : {SmallFile(), Gzip(SmallFile())}) {
    const absl::StatusOr<Tensor> tensor = Parse(bytes);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->TypeString(), "u8[2,3]");
    EXPECT_EQ(tensor->ToVector(), expected);
  }
}

TEST_F(IdxTest, BigEndianElements) {
  auto tensor = Parse(Header(0x0C, {2}) + BigEndian(0x01020304, 4) + BigEndian(0xFFFFFFFE, 4));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->TypeString(), "i32[2]");
  EXPECT_EQ(tensor->ToVector(), (std::vector<double>{0x01020304, -2}));
  tensor = Parse(Header(0x0D, {1, 1}) + BigEndian(0xC0200000, 4));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->TypeString(), "f32[1,1]");
  EXPECT_EQ(tensor->item(), -2.5);
  tensor = Parse(Header(0x0E, {1}) + BigEndian(0x3FF8000000000000, 8));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->TypeString(), "f64[1]");
  EXPECT_EQ(tensor->item(), 1.5);
}

TEST_F(IdxTest, LargerThanTheBuffersOfZlib) {
  constexpr uint32_t kCount = 300'001;
  FileBytes bytes = Header(0x08, {kCount});
  for (uint32_t i = 0; i < kCount; ++i) bytes += static_cast<char>(i * i >> 3);
  for (const FileBytes& file : {bytes, Gzip(bytes)}) {
    const auto tensor = Parse(file);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    for (uint32_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(tensor->data<uint8_t>()[i], static_cast<uint8_t>(i * i >> 3)) << i;
    }
  }
}

TEST_F(IdxTest, NoElements) {
  const auto tensor = Parse(Header(0x08, {0, 28}));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->TypeString(), "u8[0,28]");
}

TEST_F(IdxTest, TruncatedAtEveryByte) {
  const FileBytes whole = SmallFile();
  constexpr size_t kHeader = 12;
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string error = ParseError(whole.substr(0, size), absl::StatusCode::kDataLoss);
    if (size < 4) {
      EXPECT_EQ(error, Concat("truncated in the IDX header: got ", size, " bytes; expected 4"));
    } else if (size < kHeader) {
      EXPECT_EQ(error, Concat("truncated in the IDX header: got ", size - 4, " bytes; expected 8"));
    } else {
      EXPECT_EQ(error, Concat("truncated: got ", size - kHeader,
                              " bytes of data; expected 6 for u8[2,3]"));
    }
  }
}

TEST_F(IdxTest, GzipTruncatedAtEveryByte) {
  const FileBytes whole = Gzip(SmallFile());
  for (size_t size = 2; size < whole.size(); ++size) {
    EXPECT_EQ(ParseError(whole.substr(0, size), absl::StatusCode::kDataLoss), "truncated gzip data")
        << size;
  }
}

TEST_F(IdxTest, GzipDamaged) {
  FileBytes bytes = Gzip(SmallFile());
  bytes[bytes.size() - 8] ^= 1;  // checksum
  EXPECT_EQ(ParseError(bytes, absl::StatusCode::kDataLoss).rfind("damaged gzip data: ", 0), 0u);
  // Any flipped bit may only give an error or the right data (in fields that do not matter).
  const FileBytes good = Gzip(SmallFile());
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      FileBytes bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1 << bit);
      const auto tensor = Parse(bad);
      if (tensor.ok()) {
        EXPECT_EQ(tensor->ToVector(), (std::vector<double>{0, 50, 100, 150, 200, 250})) << i;
      }
    }
  }
}

TEST_F(IdxTest, TrailingBytes) {
  EXPECT_EQ(ParseError(SmallFile() + 'x', absl::StatusCode::kDataLoss),
            "trailing bytes after the 6 of u8[2,3]");
  EXPECT_EQ(ParseError(Gzip(SmallFile() + 'x'), absl::StatusCode::kDataLoss),
            "trailing bytes after the 6 of u8[2,3]");
}

TEST_F(IdxTest, NotIdx) {
  EXPECT_EQ(ParseError("PK\x03\x04....", absl::StatusCode::kInvalidArgument),
            "not an IDX file: starts with 0x50 0x4B; expected 0x00 0x00");
  EXPECT_EQ(ParseError(Header(0x09, {1}) + 'x', absl::StatusCode::kInvalidArgument),
            "IDX element type 0x09; expected 0x08 (u8), 0x0C (i32), 0x0D (f32) or 0x0E (f64)");
  EXPECT_EQ(ParseError(Header(0x08, {}) + 'x', absl::StatusCode::kInvalidArgument),
            "IDX rank 0; expected 1..8");
  EXPECT_EQ(ParseError(Header(0x08, std::vector<uint32_t>(9, 1)) + 'x',
                       absl::StatusCode::kInvalidArgument),
            "IDX rank 9; expected 1..8");
}

TEST_F(IdxTest, HugeSizesTakeNoMemory) {
  const AllocatorStats before = BufferStats();
  EXPECT_EQ(ParseError(Header(0x0E, std::vector<uint32_t>(8, 0xFFFFFFFF)),
                       absl::StatusCode::kInvalidArgument),
            "shape [4294967295,4294967295,4294967295,4294967295,4294967295,4294967295,4294967295,"
            "4294967295] has more than 1099511627776 elements");
  EXPECT_EQ(ParseError(Header(0x08, {0xFFFFFFFF, 2}), absl::StatusCode::kInvalidArgument),
            "u8[4294967295,2] takes 8589934590 bytes; expected at most 4294967296");
  EXPECT_EQ(ParseError(Header(0x08, {0xFFFFFFFF}), absl::StatusCode::kDataLoss),
            "truncated: u8[4294967295] takes 4294967295 bytes; the file holds at most 8");
  // No gzip file of this size can hold it either.
  const FileBytes gzip = Gzip(Header(0x08, {0xFFFFFFFF}));
  EXPECT_EQ(ParseError(gzip, absl::StatusCode::kDataLoss),
            Concat("truncated: u8[4294967295] takes 4294967295 bytes; the file holds at most ",
                   1032 * gzip.size()));
  EXPECT_EQ(BufferStats().allocations, before.allocations);
}

TEST_F(IdxTest, LimitOfTheCaller) {
  Write(SmallFile());
  EXPECT_TRUE(ReadIdx(path_, 6).ok());
  EXPECT_EQ(Error(ReadIdx(path_, 5).status(), absl::StatusCode::kInvalidArgument),
            "u8[2,3] takes 6 bytes; expected at most 5");
}

TEST_F(IdxTest, NoMemory) {
  Write(SmallFile());
  SetBufferLimit(1);
  const absl::Status status = ReadIdx(path_).status();
  SetBufferLimit(0);
  EXPECT_EQ(Error(status, absl::StatusCode::kResourceExhausted)
                .rfind("tensor u8[2,3]: cannot allocate 6 bytes", 0),
            0u);
}

TEST_F(IdxTest, PathsThatAreNoFile) {
  EXPECT_EQ(Error(ReadIdx(path_).status(), absl::StatusCode::kNotFound),
            "no such file or directory");
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  EXPECT_EQ(Error(ReadIdx(path_).status(), absl::StatusCode::kInvalidArgument),
            "is not a regular file");
  ASSERT_EQ(rmdir(path_.c_str()), 0);
  // A pipe without a writer must not block.
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(Error(ReadIdx(path_).status(), absl::StatusCode::kInvalidArgument),
            "is not a regular file");
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(symlink(path_.c_str(), path_.c_str()), 0);
  EXPECT_EQ(Error(ReadIdx(path_).status(), absl::StatusCode::kFailedPrecondition),
            "cannot open: Too many levels of symbolic links");
}

}  // namespace
}  // namespace halftone::io
