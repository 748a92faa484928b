// The literals are what safetensors.torch.save of the safetensors package 0.8 writes, byte for byte.
#include "halftone/core/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "halftone/core/io/file.h"

namespace halftone::io {
namespace {

using ::testing::HasSubstr;

// A file with this header, padded with spaces, and these elements.
std::string FileWith(std::string header, const std::string& data = "") {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return length + header + data;
}

std::string BytesOf(std::initializer_list<int> bytes) {
  std::string text;
  for (const int b : bytes) text += static_cast<char>(b);
  return text;
}

Safetensors ParseFile(const std::string& bytes) {
  auto contents = FromSafetensorsBytes(bytes);
  EXPECT_TRUE(contents.ok()) << contents.status();
  return contents.ok() ? *std::move(contents) : Safetensors();
}

std::string ParseError(const std::string& bytes, absl::StatusCode code) {
  const auto contents = FromSafetensorsBytes(bytes);
  EXPECT_EQ(contents.status().code(), code) << contents.status();
  return Message(contents.status());
}
std::string Invalid(const std::string& header, const std::string& data = "") {
  return ParseError(FileWith(header, data), absl::StatusCode::kInvalidArgument);
}

class SafetensorsFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  std::string Written(const Safetensors& contents) {
    const absl::Status status = WriteSafetensors(path_, contents);
    EXPECT_TRUE(status.ok()) << status;
    return ReadFile(path_, 1 << 20).value_or("");
  }
  const std::string path_ = ::testing::TempDir() + Concat("halftone_", getpid(), ".safetensors");
};

// Every type, an empty tensor, a scalar, and names beyond ASCII.
Safetensors EveryType() {
  return {{{"b", Tensor::Of(DType::kBool, {3}, {1, 0, 1})},
           {"bf", Tensor::Of(DType::kBF16, {2}, {1, -2.5})},
           {"e", Tensor::Zeros(DType::kF32, {0, 3})},
           {"f", Tensor::Of(DType::kF32, {2, 1}, {1, 2})},
           {"f43", Tensor::Of(DType::kF8E4M3, {2}, {1, -2.5})},
           {"f52", Tensor::Of(DType::kF8E5M2, {2}, {1, -2.5})},
           {"h", Tensor::Of(DType::kF16, {2}, {1, -2})},
           {"i", Tensor::Of(DType::kI32, {2}, {1, -2})},
           {"l", Tensor::Of(DType::kI64, {1}, {-1})},
           {"u", Tensor::Of(DType::kU8, {2}, {7, 255})},
           {"\xC3\xBC", Tensor::Of(DType::kF64, {}, {2.5})}},
          {{"format", "pt"}}};
}
std::string EveryTypeBytes() {
  return FileWith(
      R"({"__metadata__":{"format":"pt"},"l":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
      "\"\xC3\xBC\""
      R"(:{"dtype":"F64","shape":[],"data_offsets":[8,16]},)"
      R"("e":{"dtype":"F32","shape":[0,3],"data_offsets":[16,16]},)"
      R"("f":{"dtype":"F32","shape":[2,1],"data_offsets":[16,24]},)"
      R"("i":{"dtype":"I32","shape":[2],"data_offsets":[24,32]},)"
      R"("bf":{"dtype":"BF16","shape":[2],"data_offsets":[32,36]},)"
      R"("h":{"dtype":"F16","shape":[2],"data_offsets":[36,40]},)"
      R"("f43":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[40,42]},)"
      R"("f52":{"dtype":"F8_E5M2","shape":[2],"data_offsets":[42,44]},)"
      R"("u":{"dtype":"U8","shape":[2],"data_offsets":[44,46]},)"
      R"("b":{"dtype":"BOOL","shape":[3],"data_offsets":[46,49]}})",
      BytesOf({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,  // l
               0,    0,    0,    0,    0,    0,    4,    0x40,  // ue
               0,    0,    0x80, 0x3f, 0,    0,    0,    0x40,  // f
               1,    0,    0,    0,    0xfe, 0xff, 0xff, 0xff,  // i
               0x80, 0x3f, 0x20, 0xc0,                          // bf
               0,    0x3c, 0,    0xc0,                          // h
               0x38, 0xc2, 0x3c, 0xc1,                          // f43, f52
               7,    255,  1,    0,    1}));                    // u, b
}

void ExpectEqual(const Safetensors& a, const Safetensors& b) {
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, tensor] : b.tensors) {
    ASSERT_EQ(a.tensors.count(name), 1U) << name;
    EXPECT_TRUE(BitEqual(a.tensors.at(name), tensor)) << name;
  }
}

TEST(Safetensors, ReadsWhatTheLibraryWrites) {
  ExpectEqual(ParseFile(EveryTypeBytes()), EveryType());
}

// In any order of names and bytes, with keys in any order and spaces, as other writers have it.
TEST(Safetensors, ReadsOtherSpellings) {
  const Safetensors contents = ParseFile(FileWith(
      "{ \"b\" : {\"data_offsets\": [ 0, 2 ],\n\"shape\":[2], \"dtype\" : \"U8\"},"
      "\"a\":{\"dtype\":\"U8\",\"shape\":[1,1],\"data_offsets\":[2,3]}, \"__metadata__\":{} }",
      BytesOf({1, 2, 3})));
  ExpectEqual(contents, {{{"a", Tensor::Of(DType::kU8, {1, 1}, {3})},
                          {"b", Tensor::Of(DType::kU8, {2}, {1, 2})}},
                         {}});
  EXPECT_TRUE(ParseFile(FileWith("{}")).tensors.empty());
}

TEST_F(SafetensorsFile, WritesWhatTheLibraryWrites) {
  EXPECT_EQ(Written(EveryType()), EveryTypeBytes());
  EXPECT_EQ(Written({}), BytesOf({8, 0, 0, 0, 0, 0, 0, 0}) + "{}      ");
  const auto read = ReadSafetensors(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->tensors.empty());
}

TEST_F(SafetensorsFile, ReadsItsFiles) {
  Written(EveryType());
  const auto read = ReadSafetensors(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectEqual(*read, EveryType());
}

// Names that share a tensor, as tied weights do, are written each.
TEST_F(SafetensorsFile, SharedTensors) {
  const Tensor weight = Tensor::Of(DType::kF32, {2}, {1, 2});
  const Safetensors tied = {{{"decoder", weight}, {"embedding", weight}}, {}};
  ExpectEqual(ParseFile(Written(tied)), tied);
}

TEST_F(SafetensorsFile, RefusesWhatTheFormatHasNot) {
  const Tensor x = Tensor::Zeros(DType::kF32, {1});
  Written({{{"x", x}}, {}});
  const std::string before = ReadFile(path_, 1 << 20).value_or("");
  const auto error = [&](const Safetensors& contents) {
    const absl::Status status = WriteSafetensors(path_, contents);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(ReadFile(path_, 1 << 20).value_or(""), before);
    return Message(status);
  };
  EXPECT_EQ(error({{{"x", Tensor()}}, {}}), path_ + ": tensor \"x\" is undefined");
  EXPECT_EQ(error({{{"__metadata__", x}}, {}}),
            path_ + ": a tensor cannot be called __metadata__ in a safetensors file");
  for (const Safetensors& text :
       {Safetensors{{{"\xFF", x}}, {}}, Safetensors{{}, {{"a", "\xC3"}}}}) {
    EXPECT_EQ(error(text), path_ + ": a name or a text of the metadata is not UTF-8");
  }
}

TEST_F(SafetensorsFile, FilesThatAreNone) {
  EXPECT_EQ(ReadSafetensors(path_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadSafetensors(::testing::TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(WriteFileAtomically(path_, "\x80\x04 a pickle, say").ok());
  EXPECT_THAT(Message(ReadSafetensors(path_).status()),
              HasSubstr(path_ + ": not a safetensors file: its header would have "));
}

TEST(Safetensors, Truncated) {
  const std::string whole = EveryTypeBytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(FromSafetensorsBytes(whole.substr(0, size)).ok()) << size;
  }
  EXPECT_EQ(ParseError(whole.substr(0, 7), absl::StatusCode::kInvalidArgument),
            "not a safetensors file: has 7 bytes; expected at least 8");
  EXPECT_EQ(ParseError(whole.substr(0, whole.size() - 1), absl::StatusCode::kDataLoss),
            "truncated: got 48 bytes of elements; expected 49");
  EXPECT_EQ(ParseError(whole + "x", absl::StatusCode::kInvalidArgument),
            "1 bytes behind the last tensor; expected none");
  EXPECT_EQ(ParseError(BytesOf({9, 0, 0, 0, 0, 0, 0, 0}) + "{}", absl::StatusCode::kDataLoss),
            "truncated in the header: got 2 bytes; expected 9");
  EXPECT_EQ(ParseError(std::string(16, '\0'), absl::StatusCode::kInvalidArgument),
            "not a safetensors file: its header would have 0 bytes; expected 1 to 100000000");
  EXPECT_EQ(ParseError(std::string(16, '\xFF'), absl::StatusCode::kInvalidArgument),
            "not a safetensors file: its header would have 18446744073709551615 bytes; expected 1 "
            "to 100000000");
}

TEST(Safetensors, HeadersThatBreakTheRules) {
  const std::string no_json = "is not the JSON of safetensors";
  for (const char* text :
       {"[]", "{", "{}}", " {}", "null", "{\"a\":[[[[1]]]]}", "{\"a\":\"\xFF\"}"}) {
    EXPECT_THAT(Invalid(text), HasSubstr(no_json)) << text;
  }
  EXPECT_THAT(Invalid("{\"a\":" + std::string(100000, '[')), HasSubstr(no_json));

  const auto one = [](const std::string& entry, const std::string& data = "") {
    return Invalid("{\"a\":" + entry + "}", data);
  };
  EXPECT_EQ(one("3"), "tensor \"a\": 3; expected an object");
  EXPECT_EQ(one(R"({"dtype":"U8","shape":[]})"), "tensor \"a\": no data_offsets");
  EXPECT_EQ(one(R"({"dtype":"U8","shape":[],"data_offsets":[0,1],"x":1})", "a"),
            "tensor \"a\": unknown key \"x\"");
  EXPECT_EQ(
      one(R"({"dtype":"I16","shape":[],"data_offsets":[0,2]})", "ab"),
      "tensor \"a\": dtype \"I16\"; expected F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I64, I32, U8 or BOOL");
  EXPECT_EQ(
      one(R"({"dtype":8,"shape":[],"data_offsets":[0,1]})", "a"),
      "tensor \"a\": dtype 8; expected F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I64, I32, U8 or BOOL");
  EXPECT_EQ(one(R"({"dtype":"U8","shape":7,"data_offsets":[0,7]})", "abcdefg"),
            "tensor \"a\": shape 7; expected a list");
  for (const char* shape : {"[-1]", "[1.5]", "[\"1\"]", "[9223372036854775808]", "[null]"}) {
    EXPECT_EQ(one(Concat(R"({"dtype":"U8","shape":)", shape, R"(,"data_offsets":[0,1]})"), "a"),
              Concat("tensor \"a\": shape ", shape, "; expected whole numbers from 0 on"));
  }
  // More elements than a tensor may have, axes than a shape may have.
  EXPECT_THAT(one(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})"),
              HasSubstr("tensor \"a\": "));
  EXPECT_THAT(one(R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]})", "a"),
              HasSubstr("tensor \"a\": "));
  for (const char* offsets : {"[1,0]", "[0]", "[0,1,1]", "[-1,0]", "0", "[0,1e0]"}) {
    EXPECT_EQ(
        one(Concat(R"({"dtype":"U8","shape":[1],"data_offsets":)", offsets, "}"), "a"),
        Concat("tensor \"a\": data_offsets ",
               std::string(offsets) == "[0,1e0]" ? "[0,1.0]" : offsets, "; expected [begin, end]"));
  }
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", "abcd"),
            "tensor \"a\": f32[2] takes 8 bytes; data_offsets give 4");
  EXPECT_EQ(ParseError(FileWith(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})",
                                BytesOf({1, 2})),
                       absl::StatusCode::kDataLoss),
            "tensor \"a\": bool 1 is 2; expected 0 or 1");
}

TEST(Safetensors, PlacesAndNames) {
  const auto entry = [](const char* name, int begin, int end) {
    return Concat("\"", name, R"(":{"dtype":"U8","shape":[)", end - begin, R"(],"data_offsets":[)",
                  begin, ",", end, "]}");
  };
  EXPECT_EQ(Invalid("{" + entry("a", 0, 2) + "," + entry("b", 1, 3) + "}", "abc"),
            "tensor \"b\" begins at byte 1; expected 2, right behind what is before it");
  EXPECT_EQ(Invalid("{" + entry("a", 0, 2) + "," + entry("b", 3, 4) + "}", "abcd"),
            "tensor \"b\" begins at byte 3; expected 2, right behind what is before it");
  EXPECT_EQ(Invalid("{" + entry("a", 1, 2) + "}", "ab"),
            "tensor \"a\" begins at byte 1; expected 0, right behind what is before it");
  EXPECT_EQ(Invalid("{" + entry("a", 0, 1) + "," + entry("a", 1, 2) + "}", "ab"),
            "\"a\" occurs twice in the header");
  EXPECT_EQ(Invalid(R"({"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", "a"),
            "\"shape\" occurs twice in the header");
  EXPECT_EQ(Invalid(R"({"__metadata__":1})"), "__metadata__ is no object");
  EXPECT_EQ(Invalid(R"({"__metadata__":{"a":1}})"), "__metadata__: \"a\" is 1; expected a string");
  // A name cannot write on the terminal of who reads the message.
  EXPECT_EQ(Invalid("{\"\\u001b[2J\":1}"), "tensor \"\\x1b[2J\": 1; expected an object");
}

}  // namespace
}  // namespace halftone::io
