// Kernels that hold input 1 in an order of their own, against the reference kernel: every case of every
// op that has the attribute `packed`.
#include <gtest/gtest.h>

#include <algorithm>

#include "halftone/tests/kernels/cpu_check.h"

namespace halftone::testing {
namespace {

bool HasPacked(const std::string& op) {
  const std::vector<ir::AttrSpec>& attrs = ir::OpRegistry::Global().Find(op)->attrs;
  return std::any_of(attrs.begin(), attrs.end(),
                     [](const auto& attr) { return attr.name == "packed"; });
}

std::vector<OpCase> PackedCases() {
  std::vector<OpCase> cases;
  for (OpCase c : AllOpCases()) {
    if (!HasPacked(c.op)) continue;
    c.attrs.Set("packed", true);
    cases.push_back(std::move(c));
  }
  return cases;
}

TEST(PackedWeights, EveryCandidateAgreesWithTheReference) {
  std::set<std::string> ops;
  for (const OpCase& c : PackedCases()) {
    ops.insert(c.op);
    CheckCandidates(c);
  }
  EXPECT_EQ(ops, (std::set<std::string>{"conv2d", "conv2d_grad_input", "conv3d",
                                        "conv3d_grad_input", "linear", "matmul"}));
}

// The packing of the first CPU kernel for a case.
kernels::Packing PackingOf(OpCase c, DType dtype, ir::Layout layout = ir::Layout::kPlain) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
  const auto kernel =
      kernels::KernelRegistry::Global().Select(*CaseNode(*graph), Device::Kind::kCpu);
  EXPECT_TRUE(kernel.ok()) << Message(kernel.status());
  return kernel.ok() ? (*kernel)->packing() : kernels::Packing();
}

OpCase Conv(int64_t images, bool packed) {
  OpCase c = Case("conv2d", "packed", {Reals({images, 32, 7, 7}), Reals({48, 32, 3, 3})},
                  {{"padding", std::vector<int64_t>{1, 1}}, {"packed", packed}});
  c.channels_last = true;
  return c;
}

TEST(PackedWeights, OnlyWhereTheGraphSaysSo) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const ir::Layout last = ir::Layout::kChannelsLast;
    EXPECT_EQ(PackingOf(Conv(2, false), dtype, last).bytes, 0u) << Name(dtype);
    EXPECT_GT(PackingOf(Conv(2, true), dtype, last).bytes, 0u) << Name(dtype);
  }
}

// One copy does for all sizes of a batch, and none for two precisions.
TEST(PackedWeights, FormatsTellOrders) {
  const ir::Layout last = ir::Layout::kChannelsLast;
  const kernels::Packing two = PackingOf(Conv(2, true), DType::kF32, last);
  EXPECT_EQ(two.format, PackingOf(Conv(3, true), DType::kF32, last).format);
  EXPECT_NE(two.format, PackingOf(Conv(2, true), DType::kBF16, last).format);
  EXPECT_NE(two.format, PackingOf(Conv(2, true), DType::kF16, last).format);
  EXPECT_GE(two.bytes, 48u * 32 * 3 * 3 * 4);  // the library may add channels
}

}  // namespace
}  // namespace halftone::testing
