// The literals are what numpy.save of NumPy 2.4 writes, byte for byte.
#include "halftone/core/io/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "halftone/core/io/file.h"

namespace halftone::io {
namespace {

// A file of version 1 whose header is `text`, padded to 118 bytes as NumPy does.
std::string File(const std::string& text, const std::string& data = "") {
  std::string header = text;
  header.append(117 - text.size(), ' ');
  return std::string("\x93NUMPY\x01\x00v\x00", 10) + header + "\n" + data;
}

std::string BytesWith(std::initializer_list<int> bytes) {
  std::string text;
  for (const int b : bytes) text += static_cast<char>(b);
  return text;
}

Tensor ParseOrDie(const std::string& bytes) {
  auto tensor = FromNpyBytes(bytes);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.ok() ? *tensor : Tensor::Zeros(DType::kF32, {});
}

std::string Error(const std::string& bytes, absl::StatusCode code) {
  const auto tensor = FromNpyBytes(bytes);
  EXPECT_EQ(tensor.status().code(), code) << tensor.status();
  return Message(tensor.status());
}

struct Literal {
  const char* what;
  std::string file;
  Tensor value;
};

// numpy.save(file, numpy.array(..., dtype)), and what the array is.
std::vector<Literal> Literals() {
  std::vector<Literal> literals = {
      {"f8 scalar",
       File("{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
            BytesWith({0, 0, 0, 0, 0, 0, 4, 0x40})),
       Tensor::Of(DType::kF64, {}, {2.5})},
      {"f4",
       File("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
            BytesWith({0, 0, 0x80, 0x3f, 0, 0, 0,    0x40, 0, 0, 0x40, 0x40,
                       0, 0, 0x80, 0x40, 0, 0, 0xa0, 0x40, 0, 0, 0xc0, 0x40})),
       Tensor::Of(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6})},
      {"f2",
       File("{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }",
            BytesWith({0, 0x3c, 0, 0xc0})),
       Tensor::Of(DType::kF16, {2}, {1, -2})},
      // numpy.array([1, -2.5], ml_dtypes.bfloat16)
      {"bf16",
       File("{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }",
            BytesWith({0x80, 0x3f, 0x20, 0xc0})),
       Tensor::Of(DType::kBF16, {2}, {1, -2.5})},
      // numpy.array([1, -2.5, 448], ml_dtypes.float8_e4m3fn), and 57344 in float8_e5m2
      {"f8e4m3",
       File("{'descr': '<V1', 'fortran_order': False, 'shape': (3,), }",
            BytesWith({0x38, 0xc2, 0x7e})),
       Tensor::Of(DType::kF8E4M3, {3}, {1, -2.5, 448})},
      {"f8e5m2",
       File("{'descr': '<f1', 'fortran_order': False, 'shape': (3,), }",
            BytesWith({0x3c, 0xc1, 0x7b})),
       Tensor::Of(DType::kF8E5M2, {3}, {1, -2.5, 57344})},
      {"i8, empty", File("{'descr': '<i8', 'fortran_order': False, 'shape': (0, 3), }"),
       Tensor::Zeros(DType::kI64, {0, 3})},
      {"i4",
       File("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 1, 2), }",
            BytesWith({1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff})),
       Tensor::Of(DType::kI32, {1, 1, 2}, {1, -2})},
      {"u1", File("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", BytesWith({7, 255})),
       Tensor::Of(DType::kU8, {2}, {7, 255})},
      {"b1",
       File("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", BytesWith({1, 0, 1})),
       Tensor::Of(DType::kBool, {3}, {1, 0, 1})},
  };
  return literals;
}

TEST(Npy, ReadsWhatNumpyWrites) {
  for (const Literal& literal : Literals()) {
    SCOPED_TRACE(literal.what);
    EXPECT_TRUE(BitEqual(ParseOrDie(literal.file), literal.value));
  }
}

TEST(Npy, WritesWhatNumpyWrites) {
  for (const Literal& literal : Literals()) {
    EXPECT_EQ(ToNpyBytes(literal.value), literal.file) << literal.what;
  }
}

TEST(Npy, PutsFortranOrderIntoCOrder) {
  // numpy.asfortranarray([[1, 2, 3], [4, 5, 6]])
  EXPECT_EQ(ParseOrDie(File("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }",
                            BytesWith({1, 4, 2, 5, 3, 6})))
                .ToVector(),
            (std::vector<double>{1, 2, 3, 4, 5, 6}));
  // numpy.asfortranarray(numpy.arange(12).reshape(2, 3, 2))
  const Tensor cube =
      ParseOrDie(File("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }",
                      BytesWith({0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11})));
  EXPECT_EQ(cube.shape(), (Shape{2, 3, 2}));
  for (int i = 0; i < 12; ++i) EXPECT_EQ(cube.at(i), i);
  EXPECT_EQ(
      ParseOrDie(File("{'descr': '|u1', 'fortran_order': True, 'shape': (), }", "\x05")).item(), 5);
  EXPECT_EQ(ParseOrDie(File("{'descr': '|u1', 'fortran_order': True, 'shape': (3, 0), }")).shape(),
            (Shape{3, 0}));
}

TEST(Npy, ReadsLaterVersionsAndOtherSpellings) {
  const std::string header =
      "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }" + std::string(58, ' ') + "\n";
  for (const char version : {'\x02', '\x03'}) {
    std::string file = "\x93NUMPY";
    file += version;
    file += std::string("\0t\0\0\0", 5) + header + "\x07";
    EXPECT_EQ(ParseOrDie(file).item(), 7);
  }
  for (const char* text :
       {"{'shape':(1,),'fortran_order':False,'descr':'|u1'}",
        "{\"descr\": \"|u1\" , 'fortran_order':\n False,  'shape': ( 1 , ) ,}"}) {
    EXPECT_EQ(ParseOrDie(File(text, "\x07")).item(), 7) << text;
  }
  EXPECT_EQ(ParseOrDie(File("{'descr': '|V2', 'fortran_order': False, 'shape': (1,)}",
                            BytesWith({0x80, 0x3f})))
                .dtype(),
            DType::kBF16);
}

TEST(Npy, RefusesOtherFiles) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kLoss = absl::StatusCode::kDataLoss;
  EXPECT_EQ(Error("", kInvalid), "not an npy file: expected \\x93NUMPY at its start");
  EXPECT_EQ(Error("graph @g() {", kInvalid), "not an npy file: expected \\x93NUMPY at its start");
  EXPECT_EQ(Error("\x93NUMPY\x01", kLoss), "truncated in the npy header: got 7 bytes; expected 8");
  EXPECT_EQ(Error(std::string("\x93NUMPY\x01\0v", 9), kLoss),
            "truncated in the npy header: got 9 bytes; expected 10");
  EXPECT_EQ(Error(std::string("\x93NUMPY\x01\0v\0{", 11), kLoss),
            "truncated in the npy header: got 11 bytes; expected 128");
  EXPECT_EQ(Error(std::string("\x93NUMPY\x04\0v\0", 10), kInvalid),
            "npy version 4.0; expected 1.0, 2.0 or 3.0");
  EXPECT_EQ(Error(std::string("\x93NUMPY\x01\x01v\0", 10), kInvalid),
            "npy version 1.1; expected 1.0, 2.0 or 3.0");
  EXPECT_EQ(Error(std::string("\x93NUMPY\x02\0\xff\xff\xff\xff", 12), kInvalid),
            "npy header has 4294967295 bytes; expected at most 65535");
}

TEST(Npy, RefusesHeadersThatDescribeNoTensor) {
  const auto error = [](const std::string& header) {
    return Error(File(header), absl::StatusCode::kInvalidArgument);
  };
  const std::string keys = "; expected descr, fortran_order and shape, each once";
  EXPECT_EQ(error(""), "npy header: at byte 118 of 118: expected '{'");
  EXPECT_EQ(error("{"), "npy header: at byte 118 of 118: expected a quoted name");
  EXPECT_EQ(error("{}"), "npy header: has no descr" + keys);
  EXPECT_EQ(error("{'descr': '<f4', 'shape': ()}"), "npy header: has no fortran_order" + keys);
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': True}"), "npy header: has no shape" + keys);
  EXPECT_EQ(error("{'colour': 3}"), "npy header: key 'colour'" + keys);
  EXPECT_EQ(error("{'shape': (), 'shape': ()}"), "npy header: key 'shape'" + keys);
  EXPECT_EQ(error("{'shape' ()}"), "npy header: at byte 9 of 118: expected ':'");
  EXPECT_EQ(error("{'fortran_order': 1}"), "npy header: at byte 18 of 118: expected False or True");
  EXPECT_EQ(error("{'shape': () 'descr': '<f4'}"), "npy header: at byte 13 of 118: expected '}'");
  EXPECT_EQ(error("{'descr"), "npy header: at byte 66 of 118: expected a short name in ASCII");
  EXPECT_EQ(error("{'a\\'b': 1}"), "npy header: at byte 3 of 118: expected a short name in ASCII");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': True, 'shape': ()} x"),
            "npy header: at byte 53 of 118: expected the end of the header");
  const std::string types = "; expected <f8 <f4 <f2 <V2 |V2 <V1 |V1 <f1 <i8 <i4 |u1 |b1";
  EXPECT_EQ(error("{'descr': '>f4'}"), "npy element type '>f4'" + types);
  EXPECT_EQ(error("{'descr': '<c16'}"), "npy element type '<c16'" + types);
  EXPECT_EQ(error("{'descr': '|O'}"), "npy element type '|O'" + types);
  EXPECT_EQ(
      error("{'descr': [('a', '<f4')]}"),
      "npy element type is a structure; expected <f8 <f4 <f2 <V2 |V2 <V1 |V1 <f1 <i8 <i4 |u1 |b1");
  EXPECT_EQ(error("{'shape': (3)}"), "npy header: shape (3) is no tuple; expected (3,)");
  EXPECT_EQ(error("{'shape': (3 4)}"), "npy header: at byte 13 of 118: expected ','");
  EXPECT_EQ(error("{'shape': (-3,)}"), "npy header: at byte 11 of 118: expected an extent");
  EXPECT_EQ(error("{'shape': (99999999999999999999,)}"),
            "npy header: extent of more than 1099511627776 at byte 11");
  EXPECT_EQ(error("{'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1)}"),
            "shape [1,1,1,1,1,1,1,1,1] has rank 9; expected at most 8");
  EXPECT_EQ(error("{'shape': (1000000000000, 1000000000000)}"),
            "shape [1000000000000,1000000000000] has more than 1099511627776 elements");
}

TEST(Npy, AllocatesOnlyWhatTheFileHolds) {
  constexpr auto kLoss = absl::StatusCode::kDataLoss;
  EXPECT_EQ(
      Error(File("{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,)}", "1234"),
            kLoss),
      "f64[1099511627776] takes 8796093022208 bytes; got 4 after the npy header");
  const std::string two = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}";
  EXPECT_EQ(Error(File(two, "a"), kLoss), "u8[2] takes 2 bytes; got 1 after the npy header");
  EXPECT_EQ(Error(File(two, "abc"), kLoss), "u8[2] takes 2 bytes; got 3 after the npy header");
  EXPECT_EQ(
      Error(File("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", BytesWith({1, 255})),
            kLoss),
      "bool 1 is 255; expected 0 or 1");
}

// Random damage: no crash (under the sanitizers), and what is accepted can be written and read.
TEST(Npy, SurvivesDamage) {
  std::mt19937 random(1);
  const std::vector<Literal> literals = Literals();
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string file = literals[random() % literals.size()].file;
    for (size_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % file.size();
      switch (random() % 3) {
        case 0:
          file[at] = static_cast<char>(random());
          break;
        case 1:
          file.erase(at, 1 + random() % 4);
          break;
        default:
          file.insert(at, 1, "0123456789(),{}'<fiVub "[random() % 23]);
      }
      if (file.empty()) break;
    }
    const auto tensor = FromNpyBytes(file);
    if (!tensor.ok()) continue;
    ++accepted;
    EXPECT_TRUE(BitEqual(ParseOrDie(ToNpyBytes(*tensor)), *tensor));
  }
  EXPECT_GT(accepted, 100);
}

class NpyFile : public ::testing::Test {
 protected:
  NpyFile() {
    dir_ = std::filesystem::path(::testing::TempDir()) / Concat("npy_", getpid());
    std::filesystem::create_directories(dir_);
  }
  ~NpyFile() override { std::filesystem::remove_all(dir_); }
  std::string Path(const std::string& name) const { return (dir_ / name).string(); }
  std::filesystem::path dir_;
};

TEST_F(NpyFile, IsReadAndWritten) {
  const Tensor value = Tensor::Of(DType::kF32, {2, 2}, {-0.0, NAN, INFINITY, 1e-45});
  ASSERT_TRUE(WriteNpy(Path("v.npy"), value).ok());
  const auto read = ReadNpy(Path("v.npy"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(BitEqual(*read, value));
}

TEST_F(NpyFile, ErrorsNameTheFile) {
  const absl::Status absent = ReadNpy(Path("none.npy")).status();
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(absent), Path("none.npy") + ": no such file or directory");
  ASSERT_TRUE(WriteFileAtomically(Path("text.npy"), "hello").ok());
  const absl::Status other = ReadNpy(Path("text.npy")).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(other),
            Path("text.npy") + ": not an npy file: expected \\x93NUMPY at its start");
  EXPECT_EQ(ReadNpy(Path("text.npy"), 4).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(WriteNpy(Path("none/v.npy"), Tensor::Scalar(DType::kF32, 1)).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace halftone::io
