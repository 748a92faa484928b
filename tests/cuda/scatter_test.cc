// gather and scatter beyond the case tables: many indices, hot rows, packs, f64, faults.
#include <gtest/gtest.h>

#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tensors.h"
#include "halftone/tests/support/tolerances.h"

namespace halftone::testing {
namespace {

absl::StatusOr<std::vector<Tensor>> OnDevice(const OpCase& c, DType dtype, const ir::Node& node) {
  HT_ASSIGN_OR_RETURN(const auto kernel, kernels::KernelRegistry::Global().CreateNamed(
                                             node, CudaCandidates(c.op).at(0)->name));
  return RunOnDevice(*kernel, node, MakeCaseInputs(c, dtype));
}

void CheckCase(const OpCase& c, DType dtype) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
  const ir::Node& node = *CaseNode(*graph);
  const auto got = OnDevice(c, dtype, node);
  const auto want = RunReference(node, MakeCaseInputs(c, dtype));
  ASSERT_TRUE(got.ok() && want.ok()) << got.status();
  EXPECT_TRUE(AgreesWithReference(c.op, (*got)[0], (*want)[0])) << c.name << " in " << Name(dtype);
}

OpInput Indices(DType dtype, const std::vector<double>& values) {
  OpInput input = Whole(dtype, {static_cast<int64_t>(values.size())}, 0, 0);
  input.gen.kind = InputGen::Kind::kFixed;
  input.gen.values = values;
  return input;
}

// `pick(i)` names the row of index i.
template <typename Pick>
OpCase EmbeddingGrad(const std::string& variant, int64_t count, int64_t rows, int64_t width,
                     int64_t padding, const Pick& pick) {
  std::vector<double> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<double>(pick(i)));
  return Case("embedding_grad", variant, {Reals({count, width}), Indices(DType::kI64, ids)},
              {{"rows", rows}, {"padding_idx", padding}});
}

TEST(CudaScatterTest, AllIndicesEqual) {
  CheckCase(EmbeddingGrad("equal", 5000, 7, 3, -1, [](int64_t) { return 4; }), DType::kF32);
}

TEST(CudaScatterTest, AllIndicesDistinct) {
  // 1,237 and 5,000 have no common divisor.
  const OpCase c =
      EmbeddingGrad("distinct", 5000, 5003, 3, -1, [](int64_t i) { return i * 1237 % 5000; });
  CheckCase(c, DType::kF16);
}

TEST(CudaScatterTest, CountsAroundTheTilesOfTheSort) {
  for (int64_t count : {1, 31, 1023, 1024, 1025, 2049, 3100}) {
    CheckCase(EmbeddingGrad(Concat("count_", count), count, 50, 2, 17,
                            [](int64_t i) { return (i * i + 3 * i) % 50; }),
              DType::kF32);
  }
}

TEST(CudaScatterTest, EveryFloatInPacksAndWithoutThem) {
  for (int64_t width : {16, 8, 33, 520}) {
    const OpCase c = EmbeddingGrad(Concat("width_", width), 90, 11, width, 3,
                                   [](int64_t i) { return i * 7 % 11; });
    for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) CheckCase(c, dtype);
    OpCase wide = c;
    wide.attrs.Set("out", std::string("f32"));
    for (DType dtype : {DType::kF16, DType::kBF16}) CheckCase(wide, dtype);
  }
}

// Ids whose distinct ones end within, at and behind a block of 256 keys and a tile of 1,024.
TEST(CudaScatterTest, NamedRows) {
  for (int64_t count : {1, 255, 256, 257, 1024, 1025, 3000}) {
    for (int64_t distinct : {int64_t{1}, int64_t{255}, int64_t{256}, int64_t{900}, count}) {
      OpCase c = EmbeddingGrad(Concat(count, "_", distinct), count, 5000, 4, 6,
                               [=](int64_t i) { return i * 7 % distinct; });
      c.op = "embedding_grad_rows";
      CheckCase(c, DType::kF32);
    }
  }
  OpCase padding = EmbeddingGrad("padding", 300, 5, 3, 4, [](int64_t) { return 4; });
  padding.op = "embedding_grad_rows";
  for (DType dtype : {DType::kF64, DType::kF32, DType::kBF16}) CheckCase(padding, dtype);
}

TEST(CudaGatherTest, RowsOfEveryWidth) {
  const OpInput ids = Indices(DType::kI32, {3, 0, 4, 4, 1});
  for (int64_t width : {1, 2, 3, 4, 8, 31, 1200}) {
    const OpCase c = Case("embedding", Concat("width_", width), {Reals({5, width}), ids});
    for (DType dtype : {DType::kF64, DType::kF32, DType::kF16}) CheckCase(c, dtype);
  }
  CheckCase(Case("gather", "bools", {Bools({5, 3}), ids}), DType::kF32);
}

// What a bad index at positions 2 and 4 of 5 gives, on the device and by the reference kernel.
void ExpectFault(OpCase c, double bad, const std::string& text) {
  c.inputs[1] = Indices(DType::kI64, {0, 1, bad, 1, bad + 1});
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF32);
  const ir::Node& node = *CaseNode(*graph);
  const absl::Status got = OnDevice(c, DType::kF32, node).status();
  EXPECT_EQ(got, RunReference(node, MakeCaseInputs(c, DType::kF32)).status()) << c.name;
  EXPECT_EQ(got.code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(Message(got).find(text), std::string::npos) << Message(got);
}

TEST(CudaGatherTest, TheFirstBadIndexIsTheFault) {
  const OpInput any = Indices(DType::kI64, {0, 0, 0, 0, 0});
  for (double bad : {4.0, -7.0, 1e15}) {
    const std::string text = std::to_string(static_cast<int64_t>(bad));
    ExpectFault(Case("gather", "bad", {Reals({4, 3}), any}), bad, text);
    ExpectFault(Case("embedding", "bad", {Reals({4, 3}), any}), bad, text);
    ExpectFault(Case("gather_grad", "bad", {Reals({5, 3}), any}, {{"dim", int64_t{4}}}), bad, text);
    for (const char* op : {"embedding_grad", "embedding_grad_rows"}) {
      ExpectFault(Case(op, "bad", {Reals({5, 3}), any}, {{"rows", int64_t{4}}}), bad, text);
    }
  }
}

}  // namespace
}  // namespace halftone::testing
