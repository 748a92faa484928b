// The literals are what the package tensorboard 2.21 writes (its RecordWriter and messages), byte
// for byte.
#include "halftone/core/io/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "halftone/core/io/crc32c.h"
#include "halftone/core/io/event.h"
#include "halftone/core/io/record_file.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::io {
namespace {

using halftone::testing::Bytes;
using halftone::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// Event(wall_time=1700000000.5, file_version="brain.Event:2") as a record.
std::string VersionRecord() {
  return FromHex(
      "1800000000000000a37f4b22"
      "0900002040fc54d9411a0d627261696e2e4576656e743a32"
      "2b353110");
}
RecordReader ReaderOf(const std::string& file, size_t* at) {
  return RecordReader([&file, at](char* data, size_t bytes) -> absl::StatusOr<size_t> {
    const size_t given = std::min(bytes, file.size() - *at);
    std::memcpy(data, file.data() + *at, given);
    *at += given;
    return given;
  });
}

// The payloads of a file; the last entry is the error, "truncated", or "end".
std::vector<std::string> Read(const std::string& file) {
  size_t at = 0;
  RecordReader reader = ReaderOf(file, &at);
  std::vector<std::string> all;
  while (true) {
    const auto payload = reader.Next();
    if (!payload.ok()) {
      all.push_back(payload.status().ToString());
      return all;
    }
    if (!payload->has_value()) break;
    all.emplace_back(**payload);
  }
  all.emplace_back(reader.truncated() ? "truncated" : "end");
  return all;
}

TEST(Crc32c, HasThePublishedValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283U);
  // RFC 3720, B.4: 32 bytes of zeros, of ones, rising, falling.
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  EXPECT_EQ(Crc32c(rising), 0x46DD794EU);
  EXPECT_EQ(Crc32c(std::string(rising.rbegin(), rising.rend())), 0x113FDB5CU);
  EXPECT_EQ(Crc32c(""), 0U);
  // ((x >> 15) | (x << 17)) + 0xA282EAD8: 0xE3069283 is rotated to 0x2507C60D.
  EXPECT_EQ(MaskCrc32c(0xE3069283U), 0x2507C60DU + 0xA282EAD8U);
  EXPECT_EQ(MaskCrc32c(0), 0xA282EAD8U);
}

TEST(RecordFile, WritesWhatTensorBoardWrites) {
  std::string file;
  AppendRecord(VersionRecord().substr(12, 24), file);
  EXPECT_EQ(file, VersionRecord());
}

TEST(RecordFile, ReadsWhatItWrote) {
  const std::vector<std::string> payloads = {"", "a", std::string(1000, '\0'),
                                             std::string(700'000, 'x'), "end"};
  std::string file;
  for (const std::string& payload : payloads) AppendRecord(payload, file);
  std::vector<std::string> expected = payloads;
  expected.emplace_back("end");
  EXPECT_EQ(Read(file), expected);
  EXPECT_THAT(Read(""), ElementsAre("end"));
}

TEST(RecordFile, EndsWhereverItIsCut) {
  std::string file;
  AppendRecord("first", file);
  const size_t first = file.size();
  AppendRecord("second", file);
  for (size_t size = 0; size <= file.size(); ++size) {
    const std::vector<std::string> read = Read(file.substr(0, size));
    const bool is_whole = size == 0 || size == first || size == file.size();
    EXPECT_EQ(read.back(), is_whole ? "end" : "truncated") << size;
    EXPECT_EQ(read.size(), size < first ? 1U : size < file.size() ? 2U : 3U) << size;
  }
}

TEST(RecordFile, RefusesEveryChangedByte) {
  std::string file;
  AppendRecord("first", file);
  const size_t second = file.size();
  AppendRecord("second", file);
  for (size_t i = second; i < file.size(); ++i) {
    std::string changed = file;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    const std::vector<std::string> read = Read(changed);
    ASSERT_EQ(read.size(), 2U) << i;
    EXPECT_THAT(read[1], HasSubstr("DATA_LOSS: the record at offset 21 is damaged: the checksum "
                                   "of its "))
        << i;
  }
}

TEST(RecordFile, AllocatesNothingForAnAbsurdLength) {
  const uint64_t length = uint64_t{1} << 60;
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  const uint32_t crc = MaskCrc32c(Crc32c(file));
  file.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  EXPECT_THAT(Read(file), ElementsAre("RESOURCE_EXHAUSTED: the record at offset 0 has "
                                      "1152921504606846976 bytes; expected at most 67108864"));
}

struct EventLiteral {
  const char* what;
  const char* hex;
  Event event;
};

// Event.SerializeToString() of tensorboard; wall_time is 1.5 in all of them.
std::vector<EventLiteral> EventLiterals() {
  std::vector<EventLiteral> literals(3);
  literals[0] = {"numbers",
                 "09000000000000f83f10ac022a1e0a110a0a747261696e2f6c6f737315000020400a090a026c7215"
                 "00000000",
                 {}};
  literals[0].event.step = 300;
  literals[0].event.scalars = {{"train/loss", 2.5F}, {"lr", 0}};
  literals[1] = {"the start of a session", "09000000000000f83f10073a020801", {}};
  literals[1].event.step = 7;
  literals[1].event.starts_session = true;
  literals[2] = {"a version", "09000000000000f83f1a0d627261696e2e4576656e743a32", {}};
  literals[2].event.file_version = kEventFileVersion;
  for (EventLiteral& literal : literals) literal.event.wall_time = 1.5;
  return literals;
}

TEST(Event, IsWrittenAndReadAsTensorBoardDoes) {
  Event read;  // one for all: nothing of the event before is left
  for (const EventLiteral& literal : EventLiterals()) {
    SCOPED_TRACE(literal.what);
    const std::string expected = FromHex(literal.hex);
    std::string written;
    AppendEvent(literal.event, written);
    EXPECT_EQ(written, expected);
    ASSERT_TRUE(ParseEvent(expected, read).ok());
    EXPECT_EQ(read.wall_time, 1.5);
    EXPECT_EQ(read.step, literal.event.step);
    EXPECT_EQ(read.starts_session, literal.event.starts_session);
    EXPECT_EQ(read.file_version, literal.event.file_version);
    ASSERT_EQ(read.scalars.size(), literal.event.scalars.size());
    for (size_t i = 0; i < read.scalars.size(); ++i) {
      EXPECT_EQ(read.scalars[i].tag, literal.event.scalars[i].tag);
      EXPECT_EQ(read.scalars[i].value, literal.event.scalars[i].value);
    }
  }
}

TEST(Event, CountsWhatItDoesNotRead) {
  // Step -1; an image called p, and l = 1.
  const std::string bytes =
      FromHex("09000000000000f83f10ffffffffffffffffff012a130a070a0170220208010a080a016c150000803f");
  Event event;
  ASSERT_TRUE(ParseEvent(bytes, event).ok());
  EXPECT_EQ(event.step, -1);
  EXPECT_EQ(event.other_values, 1);
  ASSERT_EQ(event.scalars.size(), 1U);
  EXPECT_EQ(event.scalars[0].value, 1);
}

TEST(Event, RefusesDamagedOnes) {
  const auto error = [](const std::string& hex) {
    Event event;
    return ParseEvent(FromHex(hex), event).ToString();
  };
  EXPECT_EQ(error("0900"),
            "INVALID_ARGUMENT: event, byte 1 of 2: expected a number that ends with "
            "its message");
  EXPECT_EQ(error("10ffffffffffffffffffffff01"),
            "INVALID_ARGUMENT: event, byte 11 of 13: expected a varint of at most ten bytes");
  EXPECT_EQ(error("10ff"),
            "INVALID_ARGUMENT: event, byte 2 of 2: expected a varint of at most ten bytes");
  EXPECT_EQ(error("2a05"),
            "INVALID_ARGUMENT: event, byte 2 of 2: expected a field that ends with "
            "its message");
  EXPECT_EQ(error("2affffffffffffffffff01"),
            "INVALID_ARGUMENT: event, byte 11 of 11: expected a field that ends with its message");
  EXPECT_EQ(error("0b"),
            "INVALID_ARGUMENT: event, byte 1 of 1: expected a field of wire type 0, 1, "
            "2 or 5");
  EXPECT_EQ(error("2a030a0115"),
            "INVALID_ARGUMENT: summary value, byte 1 of 1: expected a number "
            "that ends with its message");
}

// The steps of the events of a file, and how it ends.
std::vector<std::string> StepsOf(const std::string& path) {
  std::vector<std::string> steps = Read(Bytes(path));
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    Event event;
    EXPECT_TRUE(ParseEvent(steps[i], event).ok());
    steps[i] =
        event.file_version.empty() ? std::to_string(event.step) : std::string(event.file_version);
  }
  return steps;
}

Event OfStep(int64_t step) {
  Event event;
  event.step = step;
  event.scalars = {{"loss", 1}};
  return event;
}

TEST(EventFile, IsReadableFromTheFirstMoment) {
  const TempDir dir;
  auto file = EventFile::Create(dir.Path("new/run"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(StepsOf(file->path()), ElementsAre("brain.Event:2", "end"));
  EXPECT_THAT(file->path(), HasSubstr("new/run/events.out.tfevents."));
  ASSERT_TRUE(file->Append(OfStep(1)).ok());
  ASSERT_TRUE(file->Append(OfStep(2)).ok());
  ASSERT_TRUE(file->Flush().ok());
  EXPECT_THAT(StepsOf(file->path()), ElementsAre("brain.Event:2", "1", "2", "end"));
}

TEST(EventFile, WritesWhenASecondHasPassedAndAtTheEnd) {
  const TempDir dir;
  std::string path;
  {
    auto file = EventFile::Create(dir.path());
    ASSERT_TRUE(file.ok()) << file.status();
    path = file->path();
    usleep(1'050'000);
    ASSERT_TRUE(file->Append(OfStep(1)).ok());
    EXPECT_THAT(StepsOf(path), ElementsAre("brain.Event:2", "1", "end"));
    ASSERT_TRUE(file->Append(OfStep(2)).ok());
  }
  EXPECT_THAT(StepsOf(path), ElementsAre("brain.Event:2", "1", "2", "end"));
}

TEST(EventFile, FollowsTheFilesThatAreThere) {
  const TempDir dir;
  // Of a clock that was ahead, and names that are none of ours.
  dir.Write("events.out.tfevents.4000000000.host.1", "");
  dir.Write("events.out.tfevents.9999999999999.host", "");
  dir.Write("notes.txt", "");
  std::vector<std::string> created;
  for (int i = 0; i < 3; ++i) {
    auto file = EventFile::Create(dir.path());
    ASSERT_TRUE(file.ok()) << file.status();
    created.push_back(file->path());
  }
  EXPECT_TRUE(std::is_sorted(created.begin(), created.end()));
  const auto listed = ListEventFiles(dir.path());
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 5U);
  EXPECT_EQ((*listed)[0], dir.Path("events.out.tfevents.4000000000.host.1"));
  EXPECT_EQ(std::vector<std::string>(listed->begin() + 1, listed->begin() + 4), created);
}

TEST(EventFile, AChildOfForkWritesNothing) {
  const TempDir dir;
  auto file = EventFile::Create(dir.path());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Append(OfStep(1)).ok());
  const pid_t child = fork();
  if (child == 0) {
    const bool ok = file->Append(OfStep(2)).ok() && file->Flush().ok();
    _exit(ok ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(file->Flush().ok());
  EXPECT_THAT(StepsOf(file->path()), ElementsAre("brain.Event:2", "1", "end"));
}

TEST(EventFile, TellsWhatTheSystemRefuses) {
  const TempDir dir;
  const std::string file = dir.Write("file", "");
  EXPECT_EQ(EventFile::Create(file).status().ToString(),
            "FAILED_PRECONDITION: " + file + ": cannot make the folder: Not a directory");
  EXPECT_THAT(EventFile::Create("/proc/none").status().ToString(),
              HasSubstr("FAILED_PRECONDITION: /proc/none: cannot make the folder: "));
  EXPECT_EQ(ListEventFiles(dir.Path("none")).status().ToString(),
            "NOT_FOUND: " + dir.Path("none") + ": no such folder");
  EXPECT_EQ(ListEventFiles(file).status().ToString(),
            "INVALID_ARGUMENT: " + file + ": is not a folder");
}

// As on a full disk: files may have 50 bytes.
TEST(EventFile, TellsAFullDisk) {
  const TempDir dir;
  auto file = EventFile::Create(dir.path());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Append(OfStep(1)).ok());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {50, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status full = file->Flush();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(full.ToString(),
            "FAILED_PRECONDITION: " + file->path() + ": cannot write: File too large");
  EXPECT_THAT(StepsOf(file->path()), ElementsAre("brain.Event:2", "end"));
}

}  // namespace
}  // namespace halftone::io
