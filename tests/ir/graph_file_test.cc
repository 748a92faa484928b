// Graphs in files, in both forms, with constants beside the text.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "halftone/graph/ir/constant_file.h"
#include "halftone/graph/ir/proto.h"
#include "halftone/graph/ir/text.h"
#include "halftone/tests/ir/test_ops.h"

namespace halftone::ir {
namespace {

namespace fs = std::filesystem;

class GraphFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RegisterTestOps();
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    dir_ = fs::path(::testing::TempDir()) / Concat("ir_", test->name(), "_", getpid());
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string Path(const std::string& name) const { return (dir_ / name).string(); }
  void Write(const std::string& name, const std::string& contents) const {
    std::ofstream(Path(name), std::ios::binary) << contents;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  // Constants of 2, 1,024 and 1,025 elements.
  static std::unique_ptr<Graph> WithConstants() {
    auto graph = std::make_unique<Graph>("g");
    Builder b(graph.get());
    for (int64_t n : {2, 1024, 1025}) {
      Tensor t = Tensor::Empty(DType::kI32, Shape{n});
      for (int64_t i = 0; i < n; ++i) t.set(i, static_cast<double>(i * i));
      b.Constant(t);
    }
    b.Constant(Tensor::Full(DType::kF32, Shape{5000}, 0.5));  // one number in the text, no file
    return graph;
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(dir_)) {
      files.push_back(entry.path().filename().string());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  fs::path dir_;
};

TEST_F(GraphFileTest, BothFormsReadBack) {
  const auto graph = WithConstants();
  graph->nodes()[0]->location = {"model.cc", 3};
  for (const char* name : {"g.txt", "g.pb"}) {
    ASSERT_TRUE(WriteGraphFile(*graph, Path(name)).ok());
    const auto read = ReadGraphFile(Path(name));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(Print(**read, TextOptions::Lossless()), Print(*graph, TextOptions::Lossless()));
  }
}

TEST_F(GraphFileTest, OnlyLargeConstantsLieBesideTheText) {
  const auto graph = WithConstants();
  ASSERT_TRUE(WriteGraphFile(*graph, Path("g.txt")).ok());
  const std::string constant = ConstantFileName(graph->nodes()[2]->attrs().Get<Tensor>("value"));
  EXPECT_EQ(Files(), (std::vector<std::string>{constant, "g.txt"}));
  EXPECT_EQ(fs::file_size(dir_ / constant), 4100u);
  EXPECT_NE(Read("g.txt").find("value=file<i32[1025]>(\"" + constant + "\")"), std::string::npos);
  // Written again, the constant is left alone and nothing is left over.
  const auto time = fs::last_write_time(dir_ / constant);
  ASSERT_TRUE(WriteGraphFile(*graph, Path("g.txt")).ok());
  EXPECT_EQ(fs::last_write_time(dir_ / constant), time);
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(GraphFileTest, SuffixNamesTheForm) {
  const absl::Status status = WriteGraphFile(Graph("g"), Path("g.json"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status),
            Path("g.json") + ": the suffix does not name a form; expected .txt or .pb");
  EXPECT_TRUE(Files().empty());
}

TEST_F(GraphFileTest, ErrorsCarryThePath) {
  EXPECT_EQ(ReadGraphFile(Path("none.txt")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadGraphFile(dir_.string()).status().code(), absl::StatusCode::kInvalidArgument);
  Write("bad.txt", "graph @g() {\n  %y = relux() }");
  EXPECT_EQ(Message(ReadGraphFile(Path("bad.txt")).status()),
            Path("bad.txt") + ": line 2, column 8: 'relux': no such op");
  Write("bad.pb", "\x08\x01\xff");
  EXPECT_EQ(ReadGraphFile(Path("bad.pb")).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(WriteGraphFile(Graph("g"), Path("no/such/dir.txt")).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(GraphFileTest, ConstantFilesAreChecked) {
  const Tensor tensor = Tensor::Of(DType::kBool, Shape{3}, {1, 0, 1});
  ASSERT_TRUE(WriteConstantFile(tensor, dir_.string()).ok());
  const std::string name = ConstantFileName(tensor), dir = dir_.string();
  EXPECT_TRUE(BitEqual(*ReadConstantFile(dir, name, DType::kBool, Shape{3}), tensor));

  const auto code = [&](const std::string& file, DType dtype, const Shape& shape) {
    return ReadConstantFile(dir, file, dtype, shape).status().code();
  };
  EXPECT_EQ(code(name, DType::kBool, Shape{4}), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code("0123456789abcdef.bin", DType::kBool, Shape{3}), absl::StatusCode::kNotFound);
  for (const char* bad : {"../0123456789abcdef.bin", "/etc/passwd", "", "0123456789ABCDEF.bin",
                          "0123456789abcdef.txt", "0123456789abcde/.bin"}) {
    const absl::Status status = ReadConstantFile(dir, bad, DType::kBool, Shape{3}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(Message(status),
              Concat("constant file \"", bad, "\"; expected 16 hexadecimal digits and .bin"));
  }
  Write(name, std::string("\1\0\2", 3));
  EXPECT_EQ(Message(ReadConstantFile(dir, name, DType::kBool, Shape{3}).status()),
            Path(name) + ": its bytes do not have the hash in its name");
}

}  // namespace
}  // namespace halftone::ir
