// The files of tests/fuzz/corpus/npz are what numpy.savez, savez_compressed and Python's zipfile
// write.
#include "halftone/core/io/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "halftone/core/io/file.h"
#include "halftone/core/io/zip_reader.h"
#include "halftone/core/io/zip_writer.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::io {
namespace {

using halftone::testing::Bytes;
using halftone::testing::TempDir;
using ::testing::HasSubstr;

std::string Corpus(const std::string& name) {
  return std::string(HALFTONE_SOURCE_DIR) + "/tests/fuzz/corpus/npz/" + name;
}

Npz ReadOrDie(const std::string& path) {
  auto contents = ReadNpz(path);
  EXPECT_TRUE(contents.ok()) << contents.status();
  return contents.ok() ? *std::move(contents) : Npz();
}

void ExpectSameArrays(const Npz& got, const Npz& expected) {
  EXPECT_EQ(got.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    const auto found = got.find(name);
    ASSERT_NE(found, got.end()) << name;
    EXPECT_TRUE(BitEqual(found->second, tensor)) << name;
  }
}

Npz Saved() {
  return {{"fc1.weight", Tensor::Of(DType::kF32, {2, 2}, {1, -2, 0.5, 0})},
          {"fc1.bias", Tensor::Of(DType::kF16, {2}, {1, -2})},
          {"steps", Tensor::Of(DType::kI64, {}, {7})},
          {"mask", Tensor::Of(DType::kBool, {2}, {1, 0})},
          {"order", Tensor::Of(DType::kI32, {2, 3}, {0, 1, 2, 3, 4, 5})},  // in Fortran order
          {"empty", Tensor::Zeros(DType::kF64, {0, 3})}};
}

TEST(Npz, ReadsWhatNumpyWrites) {
  ExpectSameArrays(ReadOrDie(Corpus("savez.npz")), Saved());
  ExpectSameArrays(ReadOrDie(Corpus("savez_compressed.npz")),
                   {{"zeros", Tensor::Zeros(DType::kU8, {3000})},
                    {"u", Tensor::Of(DType::kU8, {3}, {1, 2, 255})}});
  ExpectSameArrays(ReadOrDie(Corpus("streamed.npz")),
                   {{"streamed", Tensor::Of(DType::kI32, {2}, {3, 4})}});
  ExpectSameArrays(ReadOrDie(Corpus("zip64.npz")), {{"a", Tensor::Of(DType::kI32, {1}, {5})},
                                                    {"b", Tensor::Of(DType::kI32, {1}, {6})}});
  ExpectSameArrays(ReadOrDie(Corpus("empty.npz")), {});
}

TEST(Npz, ReadsWhatItWrote) {
  const TempDir dir;
  Npz contents = Saved();
  contents["half"] = Tensor::Of(DType::kBF16, {3}, {NAN, -0.0, 1e-40});
  contents["with/slash \xc3\xa9"] = Tensor::Of(DType::kU8, {1}, {9});
  const std::string path = dir.Path("a.npz");
  ASSERT_TRUE(WriteNpz(path, contents).ok());
  ExpectSameArrays(ReadOrDie(path), contents);
  const std::string bytes = Bytes(path);
  ASSERT_TRUE(WriteNpz(path, contents).ok());
  EXPECT_EQ(Bytes(path), bytes);
}

std::string FileError(const std::string& bytes) {
  const auto contents = FromNpzBytes(bytes);
  return contents.ok() ? "OK" : contents.status().ToString();
}

// `bytes` with a number put over those at `at`.
template <typename T>
std::string Patched(std::string bytes, size_t at, T number) {
  std::memcpy(bytes.data() + at, &number, sizeof(number));
  return bytes;
}

TEST(Npz, RefusesOtherFiles) {
  EXPECT_EQ(FileError(""), "INVALID_ARGUMENT: not a ZIP file: no end record");
  EXPECT_EQ(FileError(std::string(100'000, 'x')),
            "INVALID_ARGUMENT: not a ZIP file: no end record");
  const std::string file = Bytes(Corpus("savez_compressed.npz"));
  EXPECT_EQ(FileError(file.substr(0, file.size() - 1)),
            "INVALID_ARGUMENT: not a ZIP file: no end record");
  EXPECT_THAT(FileError(file.substr(1)), HasSubstr("DATA_LOSS: damaged ZIP file: "));

  const size_t entry = file.find("PK\x01\x02"), end = file.find("PK\x05\x06");
  const auto error = [&](size_t at, auto number) { return FileError(Patched(file, at, number)); };
  EXPECT_EQ(error(entry + 8, uint16_t{1}),
            "INVALID_ARGUMENT: member \"zeros.npy\" is encrypted; expected it plain");
  EXPECT_EQ(
      error(entry + 10, uint16_t{14}),
      "INVALID_ARGUMENT: member \"zeros.npy\" is compressed by method 14; expected 0 (stored) "
      "or 8 (deflated)");
  EXPECT_THAT(error(entry + 24, uint32_t{0x7FFFFFFF}),
              HasSubstr("INVALID_ARGUMENT: member \"zeros.npy\" claims 2147483647 bytes; the "));
  EXPECT_EQ(error(entry + 16, uint32_t{1}),
            Concat(
                "DATA_LOSS: array \"zeros\": damaged ZIP file: the checksum of member "
                "\"zeros.npy\" is ",
                [&] {
                  uint32_t crc = 0;
                  std::memcpy(&crc, file.data() + entry + 16, sizeof(crc));
                  return crc;
                }(),
                "; expected 1"));
  EXPECT_EQ(error(entry + 42, uint32_t{1}),
            "DATA_LOSS: array \"zeros\": damaged ZIP file: member \"zeros.npy\" is not where the "
            "directory says");
  EXPECT_EQ(error(entry, uint32_t{0}),
            "DATA_LOSS: damaged ZIP file: no entry where the directory should have one");
  EXPECT_EQ(error(entry + 30, uint16_t{0xFFFF}),
            "DATA_LOSS: damaged ZIP file: an entry of its directory is cut off");
  EXPECT_EQ(error(end + 10, uint16_t{1000}),
            Concat("DATA_LOSS: damaged ZIP file: 1000 members in a directory of ", end - entry,
                   " bytes"));
  EXPECT_EQ(error(end + 16, uint32_t{0xFFFFFFF}),
            "DATA_LOSS: damaged ZIP file: its directory lies outside");
  EXPECT_EQ(error(end + 4, uint16_t{1}),
            "INVALID_ARGUMENT: a ZIP file of several disks; expected one");
  EXPECT_EQ(error(end + 16, uint32_t{0xFFFFFFFF}), "DATA_LOSS: damaged ZIP file: no zip64 locator");
  // Bytes of the deflate stream: the local header has 30 bytes, the name, and an extra field of 20.
  EXPECT_THAT(error(30 + 9 + 20, uint32_t{0xFFFFFFFF}),
              HasSubstr("DATA_LOSS: array \"zeros\": damaged ZIP file: member \"zeros.npy\" is no "
                        "deflate stream"));
}

// A ZIP file of one or more members whose contents are given.
std::string ZipOf(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string file;
  ZipWriter zip([&file](std::string_view bytes) {
    file += bytes;
    return absl::OkStatus();
  });
  for (const auto& [name, contents] : members) EXPECT_TRUE(zip.Add(name, {contents}).ok());
  EXPECT_TRUE(zip.Finish().ok());
  return file;
}

TEST(Npz, RefusesMembersThatAreNoArrays) {
  EXPECT_EQ(FileError(ZipOf({{"readme.txt", "x"}})),
            "INVALID_ARGUMENT: member \"readme.txt\"; expected .npy files only");
  EXPECT_EQ(FileError(ZipOf({{"npy", "x"}})),
            "INVALID_ARGUMENT: member \"npy\"; expected .npy files only");
  EXPECT_EQ(FileError(ZipOf({{"a.npy", "x"}})),
            "INVALID_ARGUMENT: array \"a\": not an npy file: expected \\x93NUMPY at its start");
  const std::string array =
      Bytes(std::string(HALFTONE_SOURCE_DIR) + "/tests/fuzz/corpus/npy/f32.npy");
  EXPECT_EQ(FileError(ZipOf({{"a.npy", array}})), "OK");
  EXPECT_EQ(FileError(ZipOf({{"a.npy", array}, {"a.npy", array}})),
            "INVALID_ARGUMENT: member \"a.npy\" occurs twice");
  EXPECT_THAT(FileError(ZipOf({{"a.npy", array + "x"}})), HasSubstr("DATA_LOSS: array \"a\": f32"));
}

// Many members that share one deflate stream (David Fifield: "A better zip bomb", 2019), and what
// inflates to more than the caller allows.
TEST(Npz, RefusesBombs) {
  std::string file = ZipOf({{"a.npy", std::string(1000, 'x')}, {"b.npy", "y"}});
  const size_t second = file.find("PK\x01\x02", file.find("PK\x01\x02") + 1);
  file = Patched(file, second + 42, uint32_t{10});  // begins within the first
  EXPECT_EQ(FileError(file),
            "DATA_LOSS: damaged ZIP file: member \"a.npy\" runs into what is behind "
            "it");
  const std::string compressed = Bytes(Corpus("savez_compressed.npz"));
  EXPECT_EQ(FromNpzBytes(compressed, 3128 + 131).status().ToString(), "OK");
  EXPECT_EQ(FromNpzBytes(compressed, 3128 + 130).status().ToString(),
            "RESOURCE_EXHAUSTED: array \"u\" inflates to 131 bytes; expected at most 130 more");
}

// Numbers beyond 32 bits, of a writer that is told of them only.
TEST(Zip, WritesAndReadsZip64) {
  // 4 GiB of one page of zeros, mapped often, would take a minute to checksum: a file of 70,000
  // members instead has too many for 16 bits.
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 70'000; ++i) members.emplace_back(std::to_string(i), "");
  const std::string file = ZipOf(members);
  const auto zip = ZipReader::Open(file.size(), [&file](uint64_t at, void* data, size_t bytes) {
    std::memcpy(data, file.data() + at, bytes);
    return absl::OkStatus();
  });
  ASSERT_TRUE(zip.ok()) << zip.status();
  ASSERT_EQ(zip->members().size(), members.size());
  EXPECT_EQ(zip->members().back().name, "69999");
}

// Random damage: no crash (under the sanitizers), and what is accepted can be written and read.
TEST(Npz, SurvivesDamage) {
  std::mt19937 random(1);
  const TempDir dir;
  const std::vector<std::string> files = {
      Bytes(Corpus("savez.npz")), Bytes(Corpus("savez_compressed.npz")),
      Bytes(Corpus("streamed.npz")), Bytes(Corpus("zip64.npz"))};
  int accepted = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string file = files[random() % files.size()];
    for (size_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % file.size();
      if (random() % 2 == 0) {
        file[at] = static_cast<char>(random());
      } else {
        file.erase(at, 1 + random() % 4);
      }
    }
    if (FromNpzBytes(file).ok()) ++accepted;
  }
  EXPECT_GT(accepted, 50);
}

TEST(Npz, ErrorsNameTheFile) {
  const TempDir dir;
  EXPECT_EQ(ReadNpz(dir.Path("none")).status().ToString(),
            "NOT_FOUND: " + dir.Path("none") + ": no such file or directory");
  const std::string text = dir.Write("text.npz", "hello");
  EXPECT_EQ(ReadNpz(text).status().ToString(),
            "INVALID_ARGUMENT: " + text + ": not a ZIP file: no end record");
  EXPECT_EQ(WriteNpz(text, {{"a", Tensor()}}).ToString(),
            "INVALID_ARGUMENT: " + text + ": array \"a\" is undefined");
  const Tensor one = Tensor::Scalar(DType::kF32, 1);
  EXPECT_EQ(WriteNpz(text, {{std::string("a\0b", 3), one}}).ToString(),
            "INVALID_ARGUMENT: " + text +
                ": array \"a\\x00b\": a name of 3 bytes; expected at most 65531, none of them NUL");
  EXPECT_EQ(Bytes(text), "hello");
}

}  // namespace
}  // namespace halftone::io
